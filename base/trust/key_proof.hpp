// Proofs by which the two ends of a connection recognise that both have the same key, which never goes over it.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace muster {

using shared_key = std::array<unsigned char, 32>;
using nonce = std::array<unsigned char, 32>;
using key_proof = std::array<unsigned char, 32>;

/// Initialises libsodium. Throws errc::system if the kernel gives it no random numbers.
void need_sodium();

/// Returns random bytes of the kernel's: a number that is used once, or a key. Throws errc::system.
nonce make_nonce();

/// Returns what only those who have the key can make of `said`, which both ends know: a keyed BLAKE2b hash. `label` differs for the two ends, so that nobody
/// can send an end's proof back to it; nonces of both ends in `said` make it useless for another connection. It may be a key itself. Pure.
key_proof prove(shared_key const& key, std::string_view label, std::initializer_list<std::span<unsigned char const>> said);

/// Compares in constant time.
bool is_proven(key_proof const& expected, std::span<unsigned char const> got);

/// Returns the key as 64 hexadecimal digits.
std::string to_digits(shared_key const& key);
/// Returns nothing for any other text.
std::optional<shared_key> parse_digits(std::string_view digits);

}  // namespace muster
