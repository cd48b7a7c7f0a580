#include "base/trust/open_output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.hpp"

namespace muster {

namespace {

constexpr int attempts = 8;

[[noreturn]] void refuse(std::string const& path, std::string_view why, std::string_view hint) {
    throw error(errc::io,
                fmt::format("{} is not written to: {}; {}", path, why, hint.empty() ? "remove it, or give another" : hint));
}

/// Why a file that was there already is not emptied; "" if it may be.
std::string refusal_of(struct stat const& found) {
    if (S_ISDIR(found.st_mode)) return "it is a folder";
    if (!S_ISREG(found.st_mode)) return "it is a pipe, a socket or a device";
    if (found.st_uid != ::geteuid()) return fmt::format("it belongs to the user with number {}", found.st_uid);
    if (found.st_nlink != 1) return fmt::format("the file has {} names", found.st_nlink);
    return {};
}

/// Of a file that is there; -1 with ENOENT if it vanished.
unique_fd open_existing(int folder, char const* name, std::string const& path, std::string_view hint, mode_t mode) {
    // Without O_NONBLOCK a pipe would be waited for.
    unique_fd file(::openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file) {
        if (errno == ELOOP) refuse(path, "it is a symbolic link", hint);
        if (errno == ENXIO) refuse(path, "it is a pipe or a socket", hint);
        if (errno == EISDIR) refuse(path, "it is a folder", hint);
        return file;
    }
    struct stat found {};
    if (::fstat(file.get(), &found) != 0) throw_system("fstat", path, 0, hint);
    if (auto const why = refusal_of(found); !why.empty()) refuse(path, why, hint);
    if (::ftruncate(file.get(), 0) != 0) throw_system("ftruncate", path, 0, hint);
    if ((mode & 0077) == 0 && ::fchmod(file.get(), mode) != 0) throw_system("fchmod", path, 0, hint);
    return file;
}

unique_fd open_in(int folder, char const* name, std::string const& path, std::string_view hint, mode_t mode = 0666) {
    for (int i = 0; i < attempts; ++i) {
        // What is made here needs no look at its owner, whom some file systems give another number.
        unique_fd file(::openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
        if (!file && errno == EEXIST) file = open_existing(folder, name, path, hint, mode);
        if (file) return file;
        if (errno != ENOENT || i + 1 == attempts) throw_system("open", path, 0, hint);
    }
    return {};
}

}  // namespace

unique_fd open_output_file(std::string const& path, std::string_view hint) {
    return open_in(AT_FDCWD, path.c_str(), path, hint);
}

output_folder::output_folder(std::string path, std::string_view hint) : path_(std::move(path)) {
    std::error_code fault;
    std::filesystem::create_directories(path_, fault);
    if (fault)
        throw error(errc::io, fmt::format("cannot make {}: {}{}{}", path_, fault.message(), hint.empty() ? "" : "; ", hint));
    fd_.reset(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd_ && (errno == ELOOP || errno == ENOTDIR)) refuse(path_, "it is a symbolic link or no folder", hint);
    if (!fd_) throw_system("open", path_, 0, hint);
    struct stat found {};
    if (::fstat(fd_.get(), &found) != 0) throw_system("fstat", path_, 0, hint);
    if (found.st_uid != ::geteuid())
        refuse(path_, fmt::format("the folder belongs to the user with number {}", found.st_uid), hint);
}

unique_fd output_folder::open_file(std::string_view name, std::string_view hint, mode_t mode) const {
    return open_in(fd_.get(), std::string(name).c_str(), fmt::format("{}/{}", path_, name), hint, mode);
}

void output_folder::remove_file(std::string_view name) const noexcept {
    ::unlinkat(fd_.get(), std::string(name).c_str(), 0);
}

void output_folder::rename_file(std::string_view from, std::string_view to) const {
    if (::renameat(fd_.get(), std::string(from).c_str(), fd_.get(), std::string(to).c_str()) != 0)
        throw_system("rename", fmt::format("{}/{}", path_, from));
}

}  // namespace muster
