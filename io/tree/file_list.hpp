// The list of what is copied: finds files, folders and links below the sources, with size, time and mode.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// One file, folder or link, as it is to be in the target folder.
struct listed_file {
    enum class kind : std::uint8_t { folder, file, link };
    kind what = kind::file;
    std::uint32_t source = 0;  ///< the number of the folder in file_list::sources that `path` is relative to
    std::uint32_t mode = 0;    ///< the nine bits of permission; set-user-id and the like are not kept
    std::uint64_t size = 0;
    std::int64_t mtime_ns = 0;
    std::string path;    ///< below the target folder, and below its source
    std::string target;  ///< of a link

    bool is_file() const noexcept { return what == kind::file; }
    bool is_folder() const noexcept { return what == kind::folder; }
    bool operator==(listed_file const&) const = default;
};

/// Sorted by path; a folder stands before what is in it. No path is there twice.
struct file_list {
    std::vector<std::string> sources;
    std::vector<listed_file> files;
    bool operator==(file_list const&) const = default;
};

/// The name of folders that hold the state of a copy; they are never listed themselves.
inline constexpr std::string_view state_folder_name = ".muster-stage";

/// Returns what lies at and below `sources`, read by `threads` threads. A source lands in the target under its last name; of one that ends
/// in "/." the contents do. A source that is a link is followed; links below are listed as links. Throws errc::not_found,
/// errc::system, and errc::usage for pipes, sockets and devices and for two sources that give one path.
file_list list_files(std::span<std::string const> sources, int threads);

/// Throws errc::usage if the folder `target`, which need not exist, lies in one of the sources.
void refuse_target_in_sources(std::span<std::string const> sources, std::string const& target);

/// The time of change in nanoseconds, as listed_file has it, and as futimens(2) takes it.
std::int64_t mtime_ns_of(struct stat const& found) noexcept;
timespec timespec_of(std::int64_t ns) noexcept;

/// Returns whether what stat(2) found is a file of the size and the time that were listed.
bool is_unchanged(listed_file const& file, struct stat const& found) noexcept;

/// The list as bytes, and back (base/codec: a journal of other members needs another magic number). list_of_bytes() throws
/// errc::invalid_data.
std::string bytes_of_list(file_list const& list);
file_list list_of_bytes(std::string_view bytes);

/// Returns where an entry is read from.
std::string source_path(file_list const& list, listed_file const& file);

/// The folder part of a path, "" if it has none; its last name.
std::string_view parent_of(std::string_view path) noexcept;
std::string_view name_of(std::string_view path) noexcept;

}  // namespace muster
