#include "base/trust/open_output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>
#include <utility>
#include <vector>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace {

constexpr int attempts = 8;

[[noreturn]] void refuse(std::string const& path, std::string_view why, std::string_view hint) {
    throw_error(errc::io, "{} is not written to: {}; {}", path, why, hint.empty() ? "remove it, or give another" : hint);
}

/// Returns why a file that was there already is not emptied; "" if it may be.
std::string refusal_of(struct stat const& found) {
    if (S_ISDIR(found.st_mode)) return "it is a folder";
    if (!S_ISREG(found.st_mode)) return "it is a pipe, a socket or a device";
    if (found.st_uid != ::geteuid()) return fmt::format("it belongs to the user with number {}", found.st_uid);
    if (found.st_nlink != 1) return fmt::format("the file has {} names", found.st_nlink);
    return {};
}

constexpr int most_links_followed = 40;  // as the kernel's own limit

/// The parts of a path that is still to be walked, the next one last.
using parts_to_walk = std::vector<std::string>;

void add_parts(parts_to_walk& todo, std::string_view path) {
    auto parts = split(path, '/');
    std::ranges::reverse(parts);
    for (auto const part : parts)
        if (!part.empty() && part != ".") todo.emplace_back(part);
}

unique_fd open_start(std::string_view path) {
    return unique_fd(::open(path.starts_with('/') ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/// Returns where the link `part` leads. One of another user would lead what is written where that user wants.
std::string target_of(int folder, std::string const& part, std::string const& path, std::string_view hint) {
    unique_fd const link(::openat(folder, part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat found {};
    if (!link || ::fstat(link.get(), &found) != 0) throw_system("open", path, 0, hint);
    if (!S_ISLNK(found.st_mode)) throw_system("open", path, ENOTDIR, hint);
    if (found.st_uid != ::geteuid() && found.st_uid != 0)
        refuse(path, fmt::format("the link {} on the way belongs to the user with number {}", part, found.st_uid), hint);
    std::string target(PATH_MAX, '\0');
    auto const size = ::readlinkat(link.get(), "", target.data(), target.size());
    if (size < 0) throw_system("readlink", path, 0, hint);
    target.resize(static_cast<std::size_t>(size));
    return target;
}

/// Opens the folder that `todo` leads to; with `make`, makes what is missing of it.
unique_fd walk(parts_to_walk todo, std::string const& path, std::string_view hint, bool make) {
    auto at = open_start(path);
    int links = 0;
    while (at && !todo.empty()) {
        auto const part = std::move(todo.back());
        todo.pop_back();
        // O_DIRECTORY mounts a file system that is mounted when it is looked at.
        constexpr int how = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        unique_fd next(::openat(at.get(), part.c_str(), how));
        if (!next && errno == ENOENT && make && (::mkdirat(at.get(), part.c_str(), 0777) == 0 || errno == EEXIST))
            next.reset(::openat(at.get(), part.c_str(), how));
        if (next) {
            at = std::move(next);
            continue;
        }
        if (errno != ENOTDIR && errno != ELOOP) throw_system("open", path, 0, hint);
        auto const target = target_of(at.get(), part, path, hint);
        if (++links > most_links_followed) throw_system("open", path, ELOOP, hint);
        if (target.starts_with('/')) at = open_start(target);
        add_parts(todo, target);
    }
    if (!at) throw_system("open", path, 0, hint);
    return at;
}

/// The folder that holds `path`, and the name in it; "." where the path has no name.
std::pair<unique_fd, std::string> open_parent(std::string const& path, std::string_view hint, bool make) {
    parts_to_walk todo;
    add_parts(todo, path);
    std::string name = ".";
    if (!todo.empty()) {
        name = std::move(todo.front());
        todo.erase(todo.begin());
    }
    return {walk(std::move(todo), path, hint, make), std::move(name)};
}

/// Holds what is to be opened, and how.
struct wanted_file {
    int folder;
    std::string name;
    std::string path;  ///< for messages
    std::string_view hint;
    if_there found;
    mode_t mode;
};

/// Opens a file that is there; -1 with ENOENT if it vanished.
unique_fd open_existing(wanted_file const& wanted) {
    auto const& [folder, name, path, hint, how, mode] = wanted;
    // O_NONBLOCK keeps it from waiting for a pipe.
    int const access = how == if_there::kept ? O_RDWR : O_WRONLY;
    unique_fd file(::openat(folder, name.c_str(), access | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file) {
        if (errno == ELOOP) refuse(path, "it is a symbolic link", hint);
        if (errno == ENXIO) refuse(path, "it is a pipe or a socket", hint);
        if (errno == EISDIR) refuse(path, "it is a folder", hint);
        return file;
    }
    struct stat found {};
    if (::fstat(file.get(), &found) != 0) throw_system("fstat", path, 0, hint);
    if (auto const why = refusal_of(found); !why.empty()) refuse(path, why, hint);
    if (how == if_there::emptied && ::ftruncate(file.get(), 0) != 0) throw_system("ftruncate", path, 0, hint);
    if ((mode & 0077) == 0 && ::fchmod(file.get(), mode) != 0) throw_system("fchmod", path, 0, hint);
    return file;
}

unique_fd open_in(wanted_file const& wanted) {
    int const access = wanted.found == if_there::kept ? O_RDWR : O_WRONLY;
    for (int i = 0; i < attempts; ++i) {
        // A file that is made here needs no look at its owner, whom some file systems give another number.
        unique_fd file(::openat(wanted.folder, wanted.name.c_str(), access | O_CREAT | O_EXCL | O_CLOEXEC, wanted.mode));
        if (!file && errno == EEXIST && wanted.found == if_there::refused) return file;
        if (!file && errno == EEXIST) file = open_existing(wanted);
        if (file) return file;
        if (errno != ENOENT || i + 1 == attempts) throw_system("open", wanted.path, 0, wanted.hint);
    }
    return {};
}

/// A descriptor of this process by its name, as a shell gives one for >(…); -1 for any other path.
int descriptor_of(std::string_view path) {
    if (path == "/dev/stdout") return STDOUT_FILENO;
    if (path == "/dev/stderr") return STDERR_FILENO;
    constexpr std::string_view prefix = "/dev/fd/";
    auto const number = path.starts_with(prefix) ? parse_integer(path.substr(prefix.size())) : std::nullopt;
    return number && *number >= 0 && *number <= INT_MAX ? static_cast<int>(*number) : -1;
}

}  // namespace

unique_fd open_output_file(std::string const& path, std::string_view hint, if_there found, mode_t mode) {
    int const open = descriptor_of(path);
    if (open >= 0 || path == "/dev/null") {
        unique_fd file(open >= 0 ? ::fcntl(open, F_DUPFD_CLOEXEC, 0) : ::open("/dev/null", O_RDWR | O_CLOEXEC));
        if (!file) throw_system("open", path, 0, hint);
        return file;
    }
    auto const [folder, name] = open_parent(path, hint, false);
    return open_in({folder.get(), path.ends_with('/') ? "." : name, path, hint, found, mode});
}

void write_output_file(std::string const& path, std::string_view text, std::string_view hint) {
    auto file = open_output_file(path, hint);
    write_all(file.get(), text, path, hint);
    if (::close(file.release()) != 0) throw_system("close", path, 0, hint);
}

output_folder::output_folder(std::string path, std::string_view hint) : path_(std::move(path)) {
    auto const [above, name] = open_parent(path_, hint, true);
    if (::mkdirat(above.get(), name.c_str(), 0777) != 0 && errno != EEXIST) throw_system("mkdir", path_, 0, hint);
    fd_.reset(::openat(above.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd_ && (errno == ELOOP || errno == ENOTDIR)) refuse(path_, "it is a symbolic link or no folder", hint);
    if (!fd_) throw_system("open", path_, 0, hint);
    struct stat found {};
    if (::fstat(fd_.get(), &found) != 0) throw_system("fstat", path_, 0, hint);
    if (found.st_uid != ::geteuid())
        refuse(path_, fmt::format("the folder belongs to the user with number {}", found.st_uid), hint);
}

unique_fd output_folder::open_file(std::string_view name, std::string_view hint, mode_t mode) const {
    return open_in({fd_.get(), std::string(name), fmt::format("{}/{}", path_, name), hint, if_there::emptied, mode});
}

void output_folder::remove_file(std::string_view name) const noexcept {
    ::unlinkat(fd_.get(), std::string(name).c_str(), 0);
}

void output_folder::replace_file(std::string_view name, std::string_view text, std::string_view hint, mode_t mode) const {
    auto const fresh = fmt::format("{}.new", name), path = fmt::format("{}/{}", path_, name);
    write_all(open_file(fresh, hint, mode).get(), text, path, hint.empty() ? "free space there" : hint);
    if (::renameat(fd_.get(), fresh.c_str(), fd_.get(), std::string(name).c_str()) != 0) throw_system("rename", path);
}

}  // namespace muster
