#include "launch/wire/run_key.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/process/files.hpp"
#include "base/shared_library.hpp"
#include "base/throw_error.hpp"
#include "base/unique_fd.hpp"

namespace muster {

namespace {

// libmunge's interface, as munge.h of MUNGE 0.5 declares it.
constexpr int munge_ok = 0;  // EMUNGE_SUCCESS
constexpr int munge_opened_before =
    17;  // EMUNGE_CRED_REPLAYED: another rank's shim on this node has opened it; the contents are returned nevertheless
constexpr int munge_lifetime = 4;      // MUNGE_OPT_TTL
constexpr int munge_longest = -1;      // MUNGE_TTL_MAXIMUM
constexpr int munge_socket_path = 8;   // MUNGE_OPT_SOCKET
constexpr int munge_only_for_uid = 9;  // MUNGE_OPT_UID_RESTRICTION
using munge_context = void*;

[[noreturn]] void fail_by_munge(std::string_view what, std::string_view why) {
    throw_error(errc::unavailable, "{}: {}; start muster run with --pass-key environment, or with --pass-key file", what, why);
}

/// Holds libmunge for one question to munged.
class munge_question {
  public:
    munge_question(std::string_view what, std::string const& socket) : what_(what) {
        if (!library_) fail_by_munge(what, library_.missing());
        if (create_ == nullptr || destroy_ == nullptr || set_ == nullptr || encode_ == nullptr || decode_ == nullptr ||
            text_ == nullptr)
            fail_by_munge(what, library_.name() + " has not the functions of MUNGE 0.5");
        context_ = create_();
        if (context_ == nullptr) fail_by_munge(what, "munge_ctx_create failed, as for want of memory");
        if (!socket.empty()) check(set_(context_, munge_socket_path, socket.c_str()));
    }
    ~munge_question() {
        if (context_ != nullptr) destroy_(context_);
    }
    munge_question(munge_question const&) = delete;
    munge_question& operator=(munge_question const&) = delete;

    std::string encode_for_user(run_key const& key) {
        check(set_(context_, munge_lifetime, munge_longest));
        check(set_(context_, munge_only_for_uid, ::geteuid()));
        char* made = nullptr;
        int const result = encode_(&made, context_, key.bytes.data(), static_cast<int>(key.bytes.size()));
        std::unique_ptr<char, decltype(&::free)> const credential(made, &::free);
        check(result);
        return credential.get();
    }

    run_key decode(std::string const& credential) {
        void* found = nullptr;
        int length = 0;
        uid_t maker = 0;
        gid_t group = 0;
        int const result = decode_(credential.c_str(), context_, &found, &length, &maker, &group);
        std::unique_ptr<void, decltype(&::free)> const contents(found, &::free);
        if (result != munge_opened_before) check(result);
        if (maker != ::geteuid())
            fail_by_munge(what_, fmt::format("user {} has made it, and this is user {}", maker, ::geteuid()));
        run_key key;
        if (length != static_cast<int>(key.bytes.size())) fail_by_munge(what_, "it holds no key of muster run");
        std::copy_n(static_cast<unsigned char const*>(found), key.bytes.size(), key.bytes.data());
        return key;
    }

  private:
    void check(int result) const {
        if (result == munge_ok) return;
        auto const* const detail = context_text_ != nullptr ? context_text_(context_) : nullptr;
        fail_by_munge(what_, detail != nullptr ? detail : text_(result));
    }

    std::string_view what_;
    shared_library const library_{std::array{std::string("libmunge.so.2")}};
    munge_context (*const create_)() = library_.symbol<munge_context()>("munge_ctx_create");
    void (*const destroy_)(munge_context) = library_.symbol<void(munge_context)>("munge_ctx_destroy");
    int (*const set_)(munge_context, int, ...) = library_.symbol<int(munge_context, int, ...)>("munge_ctx_set");
    int (*const encode_)(char**, munge_context, void const*,
                         int) = library_.symbol<int(char**, munge_context, void const*, int)>("munge_encode");
    int (*const decode_)(char const*, munge_context, void**, int*, uid_t*,
                         gid_t*) = library_.symbol<int(char const*, munge_context, void**, int*, uid_t*, gid_t*)>("munge_decode");
    char const* (*const text_)(int) = library_.symbol<char const*(int)>("munge_strerror");
    char const* (*const context_text_)(munge_context) = library_.symbol<char const*(munge_context)>("munge_ctx_strerror");
    munge_context context_ = nullptr;
};

}  // namespace

std::string seal_by_munge(run_key const& key, std::string const& socket) {
    return fmt::format("{}{}:{}", munge_mark, socket,
                       munge_question("munge cannot seal the key of this run", socket).encode_for_user(key));
}

run_key open_by_munge(std::string_view sealed) {
    constexpr std::string_view begin_of_credential = ":MUNGE:";
    auto const begin = sealed.rfind(begin_of_credential);
    if (!sealed.starts_with(munge_mark) || begin == std::string_view::npos || begin + 1 < munge_mark.size())
        throw error(errc::parse, "MUSTER_TOKEN holds no credential of MUNGE; start ranks with muster run, not with muster shim");
    std::string const socket(sealed.substr(munge_mark.size(), begin - std::min(begin, munge_mark.size())));
    return munge_question("munge cannot open the key of this run", socket).decode(std::string(sealed.substr(begin + 1)));
}

run_key make_run_key() {
    return {make_nonce()};
}

std::string to_text(run_key const& key) {
    return to_digits(key.bytes);
}

run_key parse_run_key(std::string_view text) {
    if (auto const key = parse_digits(text)) return {*key};
    throw error(errc::parse, "MUSTER_TOKEN holds no key of muster run; start ranks with muster run, not with muster shim");
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view file_prefix = "run-";
constexpr std::time_t stale_after_s = 24 * 60 * 60;  // shims read it when they start
constexpr std::string_view advice = "start muster run with --pass-key environment";

/// statfs(2): NFS, SMB, Lustre, GPFS, Ceph, BeeGFS, PanFS, AFS, OrangeFS, OCFS2, GFS2, 9P, FUSE.
constexpr std::array<std::uint32_t, 16> network_file_systems{
    0x6969,     0xFF534D42, 0xFE534D42, 0x517B,     0x0BD00BD0, 0x47504653, 0x00C36400, 0x19830326,
    0xAAD7AAEA, 0x5346414F, 0x6B414653, 0x20030528, 0x7461636F, 0x01161970, 0x01021997, 0x65735546};

void make_private_folder(std::string const& folder) {
    std::error_code fault;
    fs::create_directories(fs::path(folder).parent_path(), fault);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) throw_system("mkdir", folder);
    struct stat found {};
    if (::lstat(folder.c_str(), &found) != 0) throw_system("lstat", folder);
    if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 0077) != 0)
        throw_error(errc::system, "{} is not a folder of mode 0700 of this user's own; run: chmod 700 {}", folder, folder);
}

void sweep(std::string const& folder) {
    auto const now = std::time(nullptr);
    for (auto const& path : folder_entries(folder)) {
        struct stat found {};
        if (!path.filename().string().starts_with(file_prefix) || ::lstat(path.c_str(), &found) != 0) continue;
        if (S_ISREG(found.st_mode) && now - found.st_mtime > stale_after_s) ::unlink(path.c_str());
    }
}

/// Returns nothing if the file does not exist (yet).
unique_fd open_key_file(std::string const& path, std::chrono::steady_clock::time_point end) {
    for (;;) {
        unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
        bool const late = errno == ENOENT || errno == ESTALE;
        if (file || !late || std::chrono::steady_clock::now() >= end) return file;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
}

}  // namespace

key_file::key_file(std::string const& folder, run_key const& key) {
    make_private_folder(folder);
    sweep(folder);
    std::string path = fmt::format("{}/{}XXXXXX", folder, file_prefix);
    unique_fd const file(::mkostemp(path.data(), O_CLOEXEC));  // 0600
    if (!file) throw_system("mkostemp", path);
    path_ = path;
    auto const text = to_text(key);
    struct stat found {};
    bool const written = ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    bool const private_ = ::fstat(file.get(), &found) == 0 && found.st_uid == ::geteuid() && (found.st_mode & 0077) == 0;
    if (written && private_) return;
    ::unlink(path_.c_str());
    throw_error(errc::system, "cannot write {} for this user alone; its file system may be full", path_);
}

key_file::~key_file() {
    ::unlink(path_.c_str());
}

run_key read_key_file(std::string const& path, duration patience) {
    auto const end = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(patience);
    auto const file = open_key_file(path, end);
    if (!file) throw_system("open", path + ", which holds the key of this run", errno, std::string(advice));
    struct stat found {};
    if (::fstat(file.get(), &found) != 0) throw_system("fstat", path);
    if (!S_ISREG(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 0077) != 0)
        throw_error(errc::system, "{} is not a file of this user's own that is closed to others; {}", path, advice);
    std::array<char, 128> text{};
    ssize_t const count = ::read(file.get(), text.data(), text.size());
    return parse_run_key({text.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))});
}

std::string key_folder(environment const& variables) {
    if (auto const cache = variables.get_or("XDG_CACHE_HOME", ""); cache.starts_with('/')) return cache + "/muster";
    if (auto const home = variables.get_or("HOME", ""); home.starts_with('/')) return home + "/.cache/muster";
    return {};
}

bool is_shared_with_nodes(std::string const& folder, std::string const& needed) {
    fs::path there = folder;
    while (there.has_relative_path() && !path_exists(there)) there = there.parent_path();
    struct statfs system {};
    struct stat own {};
    struct stat other {};
    if (::statfs(there.c_str(), &system) != 0 || ::stat(there.c_str(), &own) != 0 || ::stat(needed.c_str(), &other) != 0)
        return false;
    auto const type = static_cast<std::uint32_t>(system.f_type);
    return own.st_dev == other.st_dev && std::ranges::find(network_file_systems, type) != network_file_systems.end();
}

}  // namespace muster
