#include "launch/system/session_dir.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "launch/system/process_stat.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 10> library_prefixes{
    "mpich_", "mpich.", "vader_segment.", "nccl-", "ucx_shm_", "psm2_shm.", "psm3_shm.", "torch_", "pymp-", "sem.mp-",
};

bool named_by_a_library(std::string_view name) {
    for (auto const prefix : library_prefixes)
        if (name.starts_with(prefix)) return true;
    return false;
}

/// Identifies a file, whatever its name: device and inode. glibc makes a semaphore under another name and then links it to its
/// own.
using file_number = std::pair<dev_t, ino_t>;

struct leftover {
    std::string path;
    file_number number;
};

std::vector<leftover> leftover_candidates(std::time_t since) {
    std::vector<leftover> found;
    for (auto const& path : folder_entries("/dev/shm")) {
        if (!named_by_a_library(path.filename().string())) continue;
        struct stat info {};
        if (::lstat(path.c_str(), &info) != 0) continue;
        if (S_ISREG(info.st_mode) && info.st_uid == ::getuid() && info.st_ctim.tv_sec >= since)
            found.push_back({path, {info.st_dev, info.st_ino}});
    }
    return found;
}

/// Returns the file of a line of /proc/PID/maps: "7f…-7f… rw-s 00000000 00:19 42 /dev/shm/x (deleted)".
std::optional<file_number> mapped_file(std::string const& line) {
    unsigned major = 0, minor = 0;
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(), "%*s %*s %*s %x:%x %lu", &major, &minor, &inode) != 3) return std::nullopt;
    return file_number{makedev(major, minor), inode};
}

/// Returns the files below /dev/shm that living processes have mapped or opened.
std::set<file_number> shared_memory_in_use() {
    std::set<file_number> used;
    for (pid_t const pid : list_processes()) {
        auto const process = fs::path("/proc") / std::to_string(pid);
        // Looks at files before maps: a process that makes a segment opens it, maps it and closes it, and must be seen at every
        // moment.
        std::error_code ignored;
        for (auto const& fd : folder_entries(process / "fd")) {
            struct stat info {};
            if (fs::read_symlink(fd, ignored).string().starts_with("/dev/shm/") && ::stat(fd.c_str(), &info) == 0)
                used.insert({info.st_dev, info.st_ino});
        }
        std::ifstream maps(process / "maps");
        for (std::string line; std::getline(maps, line);)
            if (line.find("/dev/shm/") != std::string::npos)
                if (auto const file = mapped_file(line)) used.insert(*file);
    }
    return used;
}

// The kernel's number of the initial PID namespace, which is the machine's.
constexpr std::string_view initial_process_space = "pid:[4026531836]";

/// Returns the PID namespace of this process.
std::string process_space() {
    std::error_code fault;
    return fs::read_symlink("/proc/self/ns/pid", fault).string();
}

constexpr char const* marker_name = "muster-session";

/// Writes a file that identifies a session's folder, and the PID namespace in which its maker's number is valid.
void write_marker(int folder) noexcept try {
    unique_fd const file(::openat(folder, marker_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    auto const text = process_space();
    [[maybe_unused]] auto const written = ::write(file.get(), text.data(), text.size());
} catch (...) {
    // without the file the folder is not swept if this run is killed
}

/// Returns the process in "muster-UID-PID-XXXXXX" of this user; nothing for any other name.
std::optional<pid_t> maker_in_name(std::string const& name) {
    if (!name.starts_with("muster-")) return std::nullopt;  // rejects most of a full /tmp quickly
    auto const prefix = fmt::format("muster-{}-", ::getuid());
    if (!name.starts_with(prefix)) return std::nullopt;
    auto const dash = name.find('-', prefix.size());
    if (dash == std::string::npos || name.size() != dash + 7) return std::nullopt;
    auto const pid = parse_integer(std::string_view(name).substr(prefix.size(), dash - prefix.size()));
    return pid && *pid > 0 && *pid <= INT32_MAX ? std::optional(static_cast<pid_t>(*pid)) : std::nullopt;
}

/// Returns whether nobody but this user may enter the folder.
bool is_own(struct stat const& info) {
    return S_ISDIR(info.st_mode) && info.st_uid == ::getuid() && (info.st_mode & 07777) == 0700;
}

/// Returns whether make_session_dir made a folder of that name a while ago, and its maker is not known to live. Another user can
/// move a folder of this user's to such a name, but none that only this user may write to.
bool is_old_session(int folder, pid_t maker, std::time_t youngest_s) {
    struct stat info {};
    if (::fstat(folder, &info) != 0 || !is_own(info) ||
        std::time(nullptr) - info.st_ctim.tv_sec < youngest_s)  // a young one may not be locked yet
        return false;
    unique_fd const marker(::openat(folder, marker_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!marker || ::fstat(marker.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::getuid()) return false;
    std::array<char, 64> text{};
    auto const count = ::read(marker.get(), text.data(), text.size());
    if (count <= 0) return false;
    // The maker's number is not valid in another namespace (a container's), but the lock is valid everywhere.
    bool const counts_here = std::string_view(text.data(), static_cast<std::size_t>(count)) == process_space();
    return !counts_here || (::kill(maker, 0) != 0 && errno == ESRCH);
}

}  // namespace

std::vector<std::string> session_places(environment const& variables) {
    constexpr std::size_t longest = 50;  // leaves room for the folder's name and those of the folders and sockets of MPI
    std::vector<std::string> places{"/dev/shm", "/tmp"};
    auto const own = variables.get_or("TMPDIR", "");
    if (own.starts_with('/') && own.size() <= longest && own != "/tmp" && own != "/dev/shm") places.push_back(own);
    return places;
}

std::string make_session_dir(unique_fd& lock, std::vector<std::string> const& places) {
    int first_errno = 0;
    for (auto const& base : places) {
        std::string path = fmt::format("{}/muster-{}-{}-XXXXXX", base, ::getuid(), ::getpid());
        if (::mkdtemp(path.data()) != nullptr) {
            lock.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) write_marker(lock.get());
            return path;
        }
        if (first_errno == 0) first_errno = errno;
    }
    throw_system("mkdtemp", "in " + join(places, " and in "), first_errno,
                 "make one of them writable, or set TMPDIR to a folder that is, of a short path");
}

std::vector<std::string> session_dirs(std::vector<std::string> const& places) {
    std::vector<std::string> found;
    for (auto const& base : places)
        for (auto const& path : folder_entries(base)) {
            struct stat info {};
            if (maker_in_name(path.filename().string()) && ::lstat(path.c_str(), &info) == 0 && is_own(info)) found.push_back(path);
        }
    return found;
}

void remove_session_dir(std::string const& path) noexcept {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
}

void sweep_session_dirs(std::vector<std::string> const& folders, std::time_t youngest_s) noexcept try {
    for (auto const& base : folders)
        for (auto const& path : folder_entries(base)) {
            auto const maker = maker_in_name(path.filename().string());
            if (!maker) continue;
            unique_fd const folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
            if (!folder || !is_old_session(folder.get(), *maker, youngest_s)) continue;
            if (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) remove_session_dir(path);
        }
} catch (...) {
    // best effort: a run must not fail because of another one's files
}

int sweep_shared_memory(std::time_t since) noexcept try {
    // A container may have the machine's /dev/shm and see none of the processes that use it.
    if (process_space() != initial_process_space) return 0;
    auto const candidates = leftover_candidates(since);
    if (candidates.empty()) return 0;
    auto const used = shared_memory_in_use();
    int removed = 0;
    for (auto const& each : candidates)
        if (!used.contains(each.number) && ::unlink(each.path.c_str()) == 0) ++removed;
    return removed;
} catch (...) {
    return 0;  // clean-up is best effort: the user needs to know what ended the run
}

}  // namespace muster
