#include "base/trust/key_proof.hpp"

#include <sodium.h>

#include "base/error.hpp"

namespace muster {

void need_sodium() {
    if (::sodium_init() < 0) throw error(errc::system, "libsodium cannot get random numbers from the kernel");
}

nonce make_nonce() {
    need_sodium();
    nonce made;
    ::randombytes_buf(made.data(), made.size());
    return made;
}

key_proof prove(shared_key const& key, std::string_view label, std::initializer_list<std::span<unsigned char const>> said) {
    static_assert(crypto_generichash_KEYBYTES == std::tuple_size_v<shared_key>);
    crypto_generichash_state state;
    key_proof made;
    ::crypto_generichash_init(&state, key.data(), key.size(), made.size());
    ::crypto_generichash_update(&state, reinterpret_cast<unsigned char const*>(label.data()), label.size());
    for (auto const each : said) ::crypto_generichash_update(&state, each.data(), each.size());
    ::crypto_generichash_final(&state, made.data(), made.size());
    return made;
}

bool is_proven(key_proof const& expected, std::span<unsigned char const> got) {
    return got.size() == expected.size() && ::sodium_memcmp(expected.data(), got.data(), expected.size()) == 0;
}

std::string to_digits(shared_key const& key) {
    std::string digits(2 * key.size() + 1, '\0');
    ::sodium_bin2hex(digits.data(), digits.size(), key.data(), key.size());
    digits.pop_back();
    return digits;
}

std::optional<shared_key> parse_digits(std::string_view digits) {
    shared_key key;
    std::size_t length = 0;
    if (digits.size() != 2 * key.size() ||
        ::sodium_hex2bin(key.data(), key.size(), digits.data(), digits.size(), nullptr, &length, nullptr) != 0 ||
        length != key.size())
        return std::nullopt;
    return key;
}

}  // namespace muster
