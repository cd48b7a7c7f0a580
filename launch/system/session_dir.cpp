#include "launch/system/session_dir.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 10> library_prefixes{
    "mpich_", "mpich.", "vader_segment.", "nccl-", "ucx_shm_", "psm2_shm.", "psm3_shm.", "torch_", "pymp-", "sem.mp-",
};

constexpr std::time_t youngest_stale_s = 60;

bool named_by_a_library(std::string_view name) {
    for (auto const prefix : library_prefixes)
        if (name.starts_with(prefix)) return true;
    return false;
}

std::vector<std::string> leftover_candidates(std::time_t since) {
    std::vector<std::string> found;
    std::error_code fault;
    for (auto const& entry : fs::directory_iterator("/dev/shm", fault)) {
        if (!named_by_a_library(entry.path().filename().string())) continue;
        struct stat info {};
        if (::lstat(entry.path().c_str(), &info) != 0) continue;
        if (S_ISREG(info.st_mode) && info.st_uid == ::getuid() && info.st_ctim.tv_sec >= since) found.push_back(entry.path());
    }
    return found;
}

bool is_pid(std::string const& name) {
    return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

/// What living processes have mapped or opened below /dev/shm.
std::set<std::string> shared_memory_in_use() {
    std::set<std::string> used;
    std::error_code fault;
    for (auto const& process : fs::directory_iterator("/proc", fault)) {
        if (!is_pid(process.path().filename().string())) continue;
        // Files before maps: who is just making a segment opens it, maps it and closes it, and must be seen at every point of
        // that.
        std::error_code ignored;
        for (auto const& fd : fs::directory_iterator(process.path() / "fd", ignored)) {
            auto const target = fs::read_symlink(fd.path(), ignored).string();
            if (target.starts_with("/dev/shm/")) used.insert(target);
        }
        std::ifstream maps(process.path() / "maps");
        for (std::string line; std::getline(maps, line);)
            if (auto const at = line.find("/dev/shm/"); at != std::string::npos) used.insert(line.substr(at));
    }
    return used;
}

}  // namespace

std::string make_session_dir(unique_fd& lock) {
    int first_errno = 0;
    for (auto const* base : {"/dev/shm", "/tmp"}) {
        std::string path = fmt::format("{}/muster-{}-{}-XXXXXX", base, ::getuid(), ::getpid());
        if (::mkdtemp(path.data()) != nullptr) {
            lock.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            ::flock(lock.get(), LOCK_EX | LOCK_NB);
            return path;
        }
        if (first_errno == 0) first_errno = errno;
    }
    throw_system("mkdtemp", "in /dev/shm and in /tmp", first_errno, "make one of them writable");
}

void remove_session_dir(std::string const& path) noexcept {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
}

void sweep_session_dirs() noexcept try {
    auto const prefix = fmt::format("muster-{}-", ::getuid());
    for (auto const* base : {"/dev/shm", "/tmp"}) {
        std::error_code fault;
        for (auto const& entry : fs::directory_iterator(base, fault)) {
            if (!entry.path().filename().string().starts_with(prefix)) continue;
            unique_fd const folder(::open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
            struct stat info {};
            // A young one may not be locked yet.
            if (!folder || ::fstat(folder.get(), &info) != 0 || info.st_uid != ::getuid() ||
                std::time(nullptr) - info.st_ctim.tv_sec < youngest_stale_s)
                continue;
            if (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) remove_session_dir(entry.path());
        }
    }
} catch (...) {
    // best effort: a run must not fail over the leavings of another
}

int sweep_shared_memory(std::time_t since) noexcept try {
    auto const candidates = leftover_candidates(since);
    if (candidates.empty()) return 0;
    auto const used = shared_memory_in_use();
    int removed = 0;
    for (auto const& path : candidates)
        if (!used.contains(path) && ::unlink(path.c_str()) == 0) ++removed;
    return removed;
} catch (...) {
    return 0;  // cleaning up is best effort: what ended the run is what matters to the user
}

}  // namespace muster
