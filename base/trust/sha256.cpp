#include "base/trust/sha256.hpp"

#include <fmt/format.h>
#include <sodium.h>

namespace muster {

std::array<std::uint8_t, 32> sha256(std::string_view text) {
    static_assert(crypto_hash_sha256_BYTES == 32);
    std::array<std::uint8_t, 32> hash{};
    ::crypto_hash_sha256(hash.data(), reinterpret_cast<unsigned char const*>(text.data()), text.size());
    return hash;
}

std::string sha256_digits(std::string_view text, std::size_t bytes) {
    std::string digits;
    for (auto const byte : sha256(text)) {
        if (digits.size() == 2 * bytes) break;
        digits += fmt::format("{:02x}", byte);
    }
    return digits;
}

}  // namespace muster
