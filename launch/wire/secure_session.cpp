#include "launch/wire/secure_session.hpp"

#include <sodium.h>

#include <algorithm>

#include "base/error.hpp"

namespace muster {

namespace {

using stream_key = std::array<unsigned char, crypto_secretstream_xchacha20poly1305_KEYBYTES>;
constexpr std::size_t header_bytes = crypto_secretstream_xchacha20poly1305_HEADERBYTES;
constexpr std::size_t tag_bytes = crypto_secretstream_xchacha20poly1305_ABYTES;
static_assert(sealing_bytes == header_bytes + tag_bytes);
constexpr unsigned char whole = crypto_secretstream_xchacha20poly1305_TAG_MESSAGE;
constexpr unsigned char piece = crypto_secretstream_xchacha20poly1305_TAG_PUSH;  ///< any tag that makes no new key would work
static_assert(crypto_generichash_KEYBYTES == std::tuple_size_v<decltype(run_key::bytes)>);

constexpr std::string_view protocol = "muster 1";
static_assert(greeting_bytes == protocol.size() + std::tuple_size_v<session_nonce>);

unsigned char const* bytes_of(std::string_view text) {
    return reinterpret_cast<unsigned char const*>(text.data());
}

std::string as_text(session_nonce const& nonce) {
    return {reinterpret_cast<char const*>(nonce.data()), nonce.size()};
}

std::optional<session_nonce> as_nonce(std::string_view text) {
    session_nonce nonce;
    if (text.size() != nonce.size()) return std::nullopt;
    std::copy(text.begin(), text.end(), nonce.begin());
    return nonce;
}

/// Derives the key of one direction of one connection.
stream_key derive(run_key const& key, wire_end sender, session_nonce const& of_shim, session_nonce const& of_launcher) {
    std::string_view const label = sender == wire_end::launcher ? "muster 1, from launcher" : "muster 1, from the shim";
    crypto_generichash_state state;
    stream_key derived;
    ::crypto_generichash_init(&state, key.bytes.data(), key.bytes.size(), derived.size());
    ::crypto_generichash_update(&state, bytes_of(label), label.size());
    ::crypto_generichash_update(&state, of_shim.data(), of_shim.size());
    ::crypto_generichash_update(&state, of_launcher.data(), of_launcher.size());
    ::crypto_generichash_final(&state, derived.data(), derived.size());
    return derived;
}

}  // namespace

struct secure_session::streams {
    crypto_secretstream_xchacha20poly1305_state out{};
    crypto_secretstream_xchacha20poly1305_state in{};
    std::array<unsigned char, header_bytes> out_header{};
    stream_key in_key{};
    bool sent_header = false;
    bool had_header = false;
    bool broken = false;
};

session_nonce make_session_nonce() {
    if (::sodium_init() < 0) throw error(errc::system, "libsodium cannot get random numbers from the kernel");
    session_nonce nonce;
    ::randombytes_buf(nonce.data(), nonce.size());
    return nonce;
}

std::string make_greeting(session_nonce const& of_shim) {
    return std::string(protocol) + as_text(of_shim);
}

std::optional<session_nonce> read_greeting(std::string_view frame) {
    if (!frame.starts_with(protocol)) return std::nullopt;
    return as_nonce(frame.substr(protocol.size()));
}

std::string make_answer(session_nonce const& of_launcher) {
    return as_text(of_launcher);
}

std::optional<session_nonce> read_answer(std::string_view frame) {
    return as_nonce(frame);
}

secure_session::secure_session(run_key const& key, wire_end self, session_nonce const& of_shim, session_nonce const& of_launcher)
    : streams_(std::make_unique<streams>()) {
    if (::sodium_init() < 0) throw error(errc::system, "libsodium cannot get random numbers from the kernel");
    auto const other = self == wire_end::launcher ? wire_end::shim : wire_end::launcher;
    auto out_key = derive(key, self, of_shim, of_launcher);
    ::crypto_secretstream_xchacha20poly1305_init_push(&streams_->out, streams_->out_header.data(), out_key.data());
    ::sodium_memzero(out_key.data(), out_key.size());
    streams_->in_key = derive(key, other, of_shim, of_launcher);
}

secure_session::~secure_session() {
    ::sodium_memzero(streams_.get(), sizeof(streams));
}

std::string secure_session::seal(std::string_view frame, bool more) {
    std::string sealed;
    if (!streams_->sent_header)
        sealed.assign(reinterpret_cast<char const*>(streams_->out_header.data()), streams_->out_header.size());
    streams_->sent_header = true;
    auto const start = sealed.size();
    sealed.resize(start + frame.size() + tag_bytes);
    ::crypto_secretstream_xchacha20poly1305_push(&streams_->out, reinterpret_cast<unsigned char*>(sealed.data()) + start, nullptr,
                                                 bytes_of(frame), frame.size(), nullptr, 0, more ? piece : whole);
    return sealed;
}

std::optional<std::string> secure_session::open(std::string_view sealed, bool* more) {
    auto& s = *streams_;
    if (!s.had_header && sealed.size() >= header_bytes) {
        s.broken = ::crypto_secretstream_xchacha20poly1305_init_pull(&s.in, bytes_of(sealed), s.in_key.data()) != 0;
        s.had_header = true;
        sealed.remove_prefix(header_bytes);
    }
    if (!s.had_header || sealed.size() < tag_bytes) s.broken = true;
    if (s.broken) return std::nullopt;
    std::string frame(sealed.size() - tag_bytes, '\0');
    unsigned char tag = 0;
    s.broken = ::crypto_secretstream_xchacha20poly1305_pull(&s.in, reinterpret_cast<unsigned char*>(frame.data()), nullptr, &tag,
                                                            bytes_of(sealed), sealed.size(), nullptr, 0) != 0 ||
               (tag != whole && (tag != piece || more == nullptr));
    if (s.broken) return std::nullopt;
    if (more != nullptr) *more = tag == piece;
    return frame;
}

}  // namespace muster
