#include "launch/wire/munge_credential.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "base/error.hpp"
#include "base/shared_library.hpp"

namespace muster {

namespace {

// libmunge's interface, as munge.h of MUNGE 0.5 declares it.
constexpr int munge_ok = 0;  // EMUNGE_SUCCESS
constexpr int munge_opened_before =
    17;  // EMUNGE_CRED_REPLAYED: on this node, by another rank's shim; the contents are given all the same
constexpr int munge_lifetime = 4;      // MUNGE_OPT_TTL
constexpr int munge_longest = -1;      // MUNGE_TTL_MAXIMUM
constexpr int munge_socket_path = 8;   // MUNGE_OPT_SOCKET
constexpr int munge_only_for_uid = 9;  // MUNGE_OPT_UID_RESTRICTION
using munge_context = void*;

[[noreturn]] void fail_by_munge(std::string_view what, std::string_view why) {
    throw error(errc::unavailable,
                fmt::format("{}: {}; start muster run with --pass-key environment, or with --pass-key file", what, why));
}

/// libmunge, and one question to munged.
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

}  // namespace muster
