// bfloat16 (the upper half of a binary32) as a value type.
#pragma once

#include <bit>
#include <cstdint>

namespace muster {

namespace detail {

constexpr float float_from_bfloat16_bits(std::uint16_t bits) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// To the nearest, ties to even; a NaN keeps its upper payload and becomes quiet.
constexpr std::uint16_t bfloat16_bits_from_float(float value) noexcept {
    std::uint32_t const bits = std::bit_cast<std::uint32_t>(value);
    std::uint32_t const nan = (bits >> 16) | 0x0040u;
    std::uint32_t const rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

}  // namespace detail

/// Two bytes, bfloat16. Arithmetic is the user's matter: convert to float and back.
class bfloat16 {
  public:
    constexpr bfloat16() noexcept = default;
    constexpr explicit bfloat16(float value) noexcept : bits_(detail::bfloat16_bits_from_float(value)) {}
    constexpr explicit operator float() const noexcept { return detail::float_from_bfloat16_bits(bits_); }

    static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept {
        bfloat16 result;
        result.bits_ = bits;
        return result;
    }
    constexpr std::uint16_t bits() const noexcept { return bits_; }

    /// As numbers: +0 equals -0, NaN equals nothing.
    friend constexpr bool operator==(bfloat16 a, bfloat16 b) noexcept { return static_cast<float>(a) == static_cast<float>(b); }

  private:
    std::uint16_t bits_ = 0;
};
static_assert(sizeof(bfloat16) == 2);

}  // namespace muster
