// Files below an open folder: whole ones read and written, and the folders that hold them opened once.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"

namespace muster {

/// The contents of `name` in `folder`; nothing if it is not there. Links are not followed. Throws errc::system.
std::optional<std::string> read_whole_file(int folder, char const* name);

/// Writes `name` under another name and renames it. Throws errc::system.
void write_whole_file(int folder, std::string const& name, std::string_view bytes);

/// The names in a folder but "." and "..", in no order. Throws errc::system.
std::vector<std::string> names_in_folder(int folder);

/// Removes a file, or a folder with all that is in it; links are removed, not followed. No error if it does not exist. Throws
/// errc::system.
void remove_tree(int folder, std::string const& name);

// The folders below one folder, opened as they are needed: resolves a path once for all files of a folder.

/// Keeps the folder that was asked for last open. Not thread safe: each thread has its own.
class folder_cache {
  public:
    enum class links { followed, refused };

    /// `root` is borrowed. With links::refused no part of a path may be a link, so that nothing leads out of the root.
    folder_cache(int root, links how) noexcept : root_(root), how_(how) {}

    /// The folder that holds `path`; borrowed until the next call. -1 with errno where it cannot be opened.
    int parent(std::string_view path);

    /// Opens `path` itself, with O_CLOEXEC and these flags, and the mode of a file that is made. Empty with errno where it cannot.
    unique_fd open(std::string_view path, int flags, mode_t mode = 0);
    /// Returns what lstat(2) finds at `path`; nothing if that is not there.
    std::optional<struct stat> find(std::string_view path);
    /// Returns where the link `path` leads, cut off behind `most` bytes; nothing if it is no link.
    std::optional<std::string> link_target(std::string_view path, std::size_t most);

    /// Forgets what is open, because folders were moved.
    void forget() noexcept;

  private:
    int root_;
    links how_;
    std::string open_path_;
    unique_fd open_;
    bool asked_ = false;
    int fault_ = 0;
};

/// Opens `folder` below `root` as links::refused says; a copy of `root` for "". Empty with errno where that fails.
unique_fd open_folder_inside(int root, std::string_view folder);

}  // namespace muster
