#include "launch/wire/secure_session.hpp"

#include <sodium.h>

#include <algorithm>
#include <tuple>

namespace muster {

namespace {

constexpr std::size_t header_bytes = crypto_secretstream_xchacha20poly1305_HEADERBYTES;
constexpr std::size_t tag_bytes = crypto_secretstream_xchacha20poly1305_ABYTES;
static_assert(sealing_bytes == header_bytes + tag_bytes);
constexpr unsigned char whole = crypto_secretstream_xchacha20poly1305_TAG_MESSAGE;
constexpr unsigned char piece = crypto_secretstream_xchacha20poly1305_TAG_PUSH;  ///< any tag that makes no new key would work
static_assert(crypto_secretstream_xchacha20poly1305_KEYBYTES == std::tuple_size_v<key_proof>);

constexpr std::string_view protocol = "muster 1";
static_assert(greeting_bytes == protocol.size() + std::tuple_size_v<nonce>);

unsigned char const* bytes_of(std::string_view text) {
    return reinterpret_cast<unsigned char const*>(text.data());
}

std::string as_text(nonce const& what) {
    return {reinterpret_cast<char const*>(what.data()), what.size()};
}

std::optional<nonce> as_nonce(std::string_view text) {
    nonce what;
    if (text.size() != what.size()) return std::nullopt;
    std::copy(text.begin(), text.end(), what.begin());
    return what;
}

/// Returns the key of one direction of one connection: the sender's proof, which never goes over it, but seals what does.
key_proof derive(run_key const& key, wire_end sender, nonce const& of_shim, nonce const& of_launcher) {
    std::string_view const label = sender == wire_end::launcher ? "muster 1, from launcher" : "muster 1, from the shim";
    return prove(key.bytes, label, {of_shim, of_launcher});
}

}  // namespace

struct secure_session::streams {
    crypto_secretstream_xchacha20poly1305_state out{};
    crypto_secretstream_xchacha20poly1305_state in{};
    std::array<unsigned char, header_bytes> out_header{};
    key_proof in_key{};
    bool sent_header = false;
    bool had_header = false;
    bool broken = false;
};

std::string make_greeting(nonce const& of_shim) {
    return std::string(protocol) + as_text(of_shim);
}

std::optional<nonce> read_greeting(std::string_view frame) {
    if (!frame.starts_with(protocol)) return std::nullopt;
    return as_nonce(frame.substr(protocol.size()));
}

std::string make_answer(nonce const& of_launcher) {
    return as_text(of_launcher);
}

std::optional<nonce> read_answer(std::string_view frame) {
    return as_nonce(frame);
}

secure_session::secure_session(run_key const& key, wire_end self, nonce const& of_shim, nonce const& of_launcher)
    : streams_(std::make_unique<streams>()) {
    need_sodium();
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
