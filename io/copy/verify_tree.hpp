// The check of a copied tree: reads its files and compares them with the manifest.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace muster {

struct tree_check {
    std::uint64_t files = 0, bytes = 0;
    std::vector<std::string> faults;  ///< a sentence each: file, chunk, offset, what was found
};

/// Returns whether `path` is a folder with the state of a copy in it.
bool is_copied_tree(std::string const& path);

/// Compares every file that the manifests of `path` list with them, on `threads` threads. Where a chunk is damaged and its source is
/// still what it was, that is read too, to name the first byte that differs. `progress` gets the bytes read, on the calling
/// thread. Throws errc::not_found where there is no manifest, errc::invalid_data where that is damaged, errc::system.
tree_check verify_tree(std::string const& path, int threads,
                       std::function<void(std::uint64_t done, std::uint64_t total)> const& progress);

struct tree_cleaning {
    std::uint64_t removed = 0;
    std::uint64_t bytes = 0;
    std::vector<std::string> kept;  ///< files that have changed since they were copied
};

/// Removes what the manifests of `path` list and what was unpacked, files that have changed since aside unless `changed_too`, what killed copies have left,
/// and the state folders; nothing else. Folders that hold something else stay. With `dry_run` nothing is removed. Throws as
/// verify_tree(), and errc::io if another process works there.
tree_cleaning clean_tree(std::string const& path, bool changed_too, bool dry_run);

}  // namespace muster
