// The manifest of a copied tree: says what was copied, from where, and the checksums of its chunks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

    /// The entry of a path; null if there is none.
    manifest_entry const* find(std::string_view path) const noexcept;
    /// Takes the entries of `newer`, also in place of own ones of the same path.
    void merge(manifest newer);
    bool operator==(manifest const&) const = default;
};

std::string text_of_manifest(manifest const& what);

/// Throws errc::invalid_data, naming `origin` and the line.
manifest parse_manifest(std::string_view text, std::string_view origin);

}  // namespace muster
