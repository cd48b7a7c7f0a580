// The manifest of a copied tree: says what was copied, from where, and the checksums of its chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "io/tree/file_list.hpp"

namespace muster {

/// A file with the checksums (XXH3-64) of its chunks.
struct manifest_entry {
    listed_file file;
    std::uint64_t chunk_bytes = 0;
    std::vector<std::uint64_t> checksums;
    bool operator==(manifest_entry const&) const = default;
};

/// Sorted by path. Text, a line an entry: its kind, and fields with tabs between. In paths, a backslash stands before a backslash, t
/// (tab) and n (line feed). The last line holds the number of entries and the checksum of all before it.
struct manifest {
    std::vector<std::string> sources;
    std::vector<manifest_entry> entries;

    /// The entry of a path, or null.
    manifest_entry const* find(std::string_view path) const noexcept;
    /// Takes the entries of `newer`, also in place of own ones of the same path.
    void merge(manifest newer);
    bool operator==(manifest const&) const = default;
};

std::string text_of_manifest(manifest const& what);

/// Throws errc::invalid_data, naming `origin` and the line.
manifest parse_manifest(std::string_view text, std::string_view origin);

// The journal of a copy under way: says which chunks have been written, so that a copy that was killed goes on there.

/// A chunk of a file of the journal's list that has been written, and its checksum.
struct journal_record {
    std::uint64_t file = 0;
    std::uint64_t chunk = 0;  ///< of the file, from 0
    std::uint64_t checksum = 0;
    bool operator==(journal_record const&) const = default;
};

struct journal_contents {
    std::uint64_t chunk_bytes = 0;
    file_list list;
    std::vector<journal_record> records;
};

/// Returns what the journal in the folder `state` says; nothing without a whole one. A record that was cut off is left
/// out. What it says is to be checked against the files: they may have come to the disk later than the journal, or not at all.
std::optional<journal_contents> read_journal(int state);

/// Open for records. Thread safe.
class journal {
  public:
    /// Makes it in the folder `state`, in place of an earlier one, with the records of `start`.
    journal(int state, journal_contents const& start);

    /// One write(2), which is whole or cut off. Throws errc::system.
    void append(std::span<journal_record const> records) const;

  private:
    unique_fd file_;
};

}  // namespace muster
