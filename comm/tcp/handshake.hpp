// The first messages of a connection between two ranks prove to each end that the other one is the rank that the rendezvous named.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/trust/key_proof.hpp"

namespace muster::tcp {

using public_key = std::array<unsigned char, 32>;
using secret_key = std::array<unsigned char, 32>;
using world_id = std::array<unsigned char, 16>;

/// The keys of a process for X25519; the secret half never leaves it. Throws errc::system.
struct key_pair {
    public_key open{};
    secret_key secret{};
};
key_pair make_key_pair();

/// Returns the id of a world by its name. Pure.
world_id id_of_world(std::string_view name);

/// Returns the key that two ranks of one world share and nobody else can know: from this rank's secret, the other's public key,
/// which came by the rendezvous, and the world's name. The same on both. Pure.
shared_key agree(key_pair const& own, public_key const& other, std::string_view world);

/// A caller sends this first, in clear. The rank that is called answers with a nonce and its proof; a `dial` then sends its own proof, and messages
/// follow. A `call_me` only asks the other rank, of lower number, to dial.
struct greeting {
    enum class kind : std::uint32_t { dial = 1, call_me = 2 };
    kind what = kind::dial;
    world_id world{};
    std::int32_t from = 0;
    std::int32_t to = 0;
    nonce of_caller{};
    bool operator==(greeting const&) const = default;
};
inline constexpr std::size_t greeting_bytes = 8 + 4 + 16 + 4 + 4 + 32;
using greeting_text = std::array<unsigned char, greeting_bytes>;
greeting_text write_greeting(greeting const& what);
/// Returns nothing if it is not a greeting of this version. Pure.
std::optional<greeting> read_greeting(std::span<unsigned char const> bytes);

inline constexpr std::size_t answer_bytes = 32 + 32;

/// Returns the proof of the end that gives it. Pure.
enum class end_of_link { caller, called };
key_proof prove(shared_key const& key, end_of_link who, greeting_text const& greeting, nonce const& of_called);

}  // namespace muster::tcp
