// The journal of a copy under way: says which chunks have been written, so that a copy that was killed goes on there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/unique_fd.hpp"
#include "io/tree/file_list.hpp"

namespace muster {

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

/// What the journal in the folder `state` says; nothing if there is none, or none that is whole. A record that was cut off is left
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
