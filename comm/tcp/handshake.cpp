#include "comm/tcp/handshake.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/error.hpp"

namespace muster::tcp {

namespace {

/// Includes the version of these messages and of the frames that follow.
constexpr std::array<unsigned char, 8> protocol{'m', 's', 't', 'r', 't', 'c', 'p', 1};

void need_sodium() {
    if (::sodium_init() < 0) throw error(errc::system, "libsodium cannot get random numbers from the kernel");
}

unsigned char const* bytes_of(std::string_view text) {
    return reinterpret_cast<unsigned char const*>(text.data());
}

}  // namespace

key_pair make_key_pair() {
    need_sodium();
    static_assert(crypto_box_PUBLICKEYBYTES == 32 && crypto_box_SECRETKEYBYTES == 32);
    key_pair made;
    ::crypto_box_keypair(made.open.data(), made.secret.data());
    return made;
}

nonce make_nonce() {
    nonce made;
    ::randombytes_buf(made.data(), made.size());
    return made;
}

world_id id_of_world(std::string_view name) {
    static constexpr std::string_view label = "muster tcp world";
    world_id id;
    ::crypto_generichash(id.data(), id.size(), bytes_of(name), name.size(), bytes_of(label), label.size());
    return id;
}

link_key agree(key_pair const& own, public_key const& other, std::string_view world) {
    std::array<unsigned char, crypto_scalarmult_BYTES> shared{};
    // A point that gives no secret would let anybody in, so the key is then one that nobody else has.
    if (::crypto_scalarmult(shared.data(), own.secret.data(), other.data()) != 0) ::randombytes_buf(shared.data(), shared.size());
    crypto_generichash_state state;
    link_key key;
    ::crypto_generichash_init(&state, shared.data(), shared.size(), key.size());
    for (auto const* each : {&std::min(own.open, other), &std::max(own.open, other)})
        ::crypto_generichash_update(&state, each->data(), each->size());
    ::crypto_generichash_update(&state, bytes_of(world), world.size());
    ::crypto_generichash_final(&state, key.data(), key.size());
    ::sodium_memzero(shared.data(), shared.size());
    return key;
}

greeting_text write_greeting(greeting const& what) {
    greeting_text bytes;
    auto* to = std::copy(protocol.begin(), protocol.end(), bytes.begin());
    auto const put = [&](auto const& value) {
        std::memcpy(to, &value, sizeof value);
        to += sizeof value;
    };
    put(what.what);
    put(what.world);
    put(what.from);
    put(what.to);
    put(what.of_caller);
    return bytes;
}

std::optional<greeting> read_greeting(std::span<unsigned char const> bytes) {
    if (bytes.size() != greeting_bytes || !std::equal(protocol.begin(), protocol.end(), bytes.begin())) return std::nullopt;
    auto const* from = bytes.data() + protocol.size();
    greeting what;
    auto const get = [&](auto& value) {
        std::memcpy(&value, from, sizeof value);
        from += sizeof value;
    };
    get(what.what);
    get(what.world);
    get(what.from);
    get(what.to);
    get(what.of_caller);
    bool const known = what.what == greeting::kind::dial || what.what == greeting::kind::call_me;
    return known && what.from >= 0 && what.to >= 0 ? std::optional(what) : std::nullopt;
}

proof prove(link_key const& key, end_of_link who, greeting_text const& greeting, nonce const& of_called) {
    crypto_generichash_state state;
    proof made;
    auto const label = static_cast<unsigned char>(who);
    ::crypto_generichash_init(&state, key.data(), key.size(), made.size());
    ::crypto_generichash_update(&state, &label, 1);
    ::crypto_generichash_update(&state, greeting.data(), greeting.size());
    ::crypto_generichash_update(&state, of_called.data(), of_called.size());
    ::crypto_generichash_final(&state, made.data(), made.size());
    return made;
}

bool is_proven(proof const& expected, std::span<unsigned char const> got) {
    return got.size() == expected.size() && ::sodium_memcmp(expected.data(), got.data(), expected.size()) == 0;
}

}  // namespace muster::tcp
