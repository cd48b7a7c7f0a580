#include "comm/tcp/handshake.hpp"

#include <sodium.h>

#include <algorithm>
#include <tuple>

#include "base/codec/codec.hpp"
#include "base/error.hpp"

namespace muster::tcp {

namespace {

/// Includes the version of these messages and of the frames that follow.
constexpr std::array<unsigned char, 8> protocol{'m', 's', 't', 'r', 't', 'c', 'p', 2};

}  // namespace

key_pair make_key_pair() {
    need_sodium();
    static_assert(crypto_box_PUBLICKEYBYTES == 32 && crypto_box_SECRETKEYBYTES == 32);
    key_pair made;
    ::crypto_box_keypair(made.open.data(), made.secret.data());
    return made;
}

world_id id_of_world(std::string_view name) {
    static constexpr std::string_view label = "muster tcp world";
    auto const bytes = [](std::string_view text) { return reinterpret_cast<unsigned char const*>(text.data()); };
    world_id id;
    ::crypto_generichash(id.data(), id.size(), bytes(name), name.size(), bytes(label), label.size());
    return id;
}

shared_key agree(key_pair const& own, public_key const& other, std::string_view world) {
    shared_key shared{};
    static_assert(crypto_scalarmult_BYTES == std::tuple_size_v<shared_key>);
    // A point that gives no secret would let anybody in, so the key is then one that nobody else has.
    if (::crypto_scalarmult(shared.data(), own.secret.data(), other.data()) != 0) shared = make_nonce();
    auto const name = std::span(reinterpret_cast<unsigned char const*>(world.data()), world.size());
    auto const key = muster::prove(shared, "", {std::min(own.open, other), std::max(own.open, other), name});
    ::sodium_memzero(shared.data(), shared.size());
    return key;
}

greeting_text write_greeting(greeting const& what) {
    greeting_text bytes;
    static_assert(greeting_bytes == codec::least_bytes<decltype(protocol), greeting>);
    codec::encode_to(std::as_writable_bytes(std::span(bytes)), protocol, what);
    return bytes;
}

std::optional<greeting> read_greeting(std::span<unsigned char const> bytes) try {
    auto begin = protocol;
    greeting what;
    codec::reader from(std::as_bytes(bytes));
    from >> begin >> what;
    from.end();
    return begin == protocol && what.from >= 0 && what.to >= 0 ? std::optional(what) : std::nullopt;
} catch (error const&) {
    return std::nullopt;
}

key_proof prove(shared_key const& key, end_of_link who, greeting_text const& greeting, nonce const& of_called) {
    return muster::prove(key, who == end_of_link::caller ? "c" : "a", {greeting, of_called});
}

}  // namespace muster::tcp
