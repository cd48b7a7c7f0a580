#include "io/stage/unpack_sources.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "base/error.hpp"
#include "io/copy/copy_target.hpp"
#include "io/stage/unpack_archive.hpp"
#include "io/tree/small_files.hpp"

namespace muster::stage {

namespace {

unique_fd make_folder_in(int parent, char const* name) {
    if (::mkdirat(parent, name, 0700) != 0 && errno != EEXIST) throw_system("mkdir", name);
    unique_fd folder(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder) throw_system("open", name);
    return folder;
}

struct stat status_of(int root, std::string const& archive) {
    struct stat found {};
    if (::fstatat(root, archive.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) throw_system("stat", archive);
    return found;
}

/// Says which archive a folder came from.
std::string stamp_of(struct stat const& found, std::string const& archive) {
    return fmt::format("{}\t{}\t{}.{:09}\n", archive, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

/// False if it was there.
bool unpack_one(copy_target const& target, std::string const& archive, std::optional<std::uint64_t> most_bytes) {
    struct stat const from = status_of(target.root(), archive);
    std::string const name = unpacked_name(archive), full = target.path() + "/" + name;
    std::string const stamp = stamp_of(from, archive);
    unique_fd const stamps = make_folder_in(target.state(), unpacked_folder_name);
    auto const known = read_whole_file(stamps.get(), name.c_str());
    struct stat found {};
    bool const there = ::fstatat(target.root(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && known == stamp) return false;
    if (there && !known)
        throw error(errc::usage,
                    fmt::format("{} is there and was not unpacked from {}; remove it, or give another folder", full, archive));
    unique_fd const growing = make_folder_in(target.state(), "unpacking");
    remove_tree(growing.get(), name);
    unique_fd const inside = make_folder_in(growing.get(), name.c_str());
    unpack_limits limits = default_limits(static_cast<std::uint64_t>(from.st_size));
    limits.bytes = most_bytes.value_or(limits.bytes);
    try {
        unpack_archive(target.path() + "/" + archive, inside.get(), limits);
    } catch (...) {
        remove_tree(target.state(), "unpacking");  // its space is needed by who frees some
        throw;
    }
    if (there) remove_tree(target.root(), name);
    write_whole_file(stamps.get(), name, stamp);
    if (::fchmod(inside.get(), 0755) != 0 || ::renameat(growing.get(), name.c_str(), target.root(), name.c_str()) != 0)
        throw_system("rename to", full);
    remove_tree(target.state(), "unpacking");
    return true;
}

}  // namespace

std::uint64_t unpack_sources(copy_request const& request, std::optional<std::uint64_t> most_bytes) {
    copy_target const target(request.target, request.state_name, false);
    std::uint64_t unpacked = 0;
    bool any = false;
    for (std::string const& source : request.sources) {
        std::string const archive(name_of(source));
        if (unpacked_name(archive).empty()) continue;
        any = true;
        unpacked += unpack_one(target, archive, most_bytes) ? 1 : 0;
    }
    if (!any)
        throw error(errc::usage,
                    "--unpack: no source ends in .tar, .tar.gz, .tgz, .tar.zst, .tar.xz, .tar.bz2 or .zip; leave it out");
    return unpacked;
}

}  // namespace muster::stage
