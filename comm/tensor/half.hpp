// IEEE 754 binary16 as a value type.
#pragma once

#include <bit>
#include <cstdint>

namespace muster {

// bfloat16 (the upper half of a binary32) as a value type.

namespace detail {

constexpr float float_from_bfloat16_bits(std::uint16_t bits) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Rounds to nearest, ties to even; a NaN keeps its upper payload and becomes quiet.
constexpr std::uint16_t bfloat16_bits_from_float(float value) noexcept {
    std::uint32_t const bits = std::bit_cast<std::uint32_t>(value);
    std::uint32_t const nan = (bits >> 16) | 0x0040u;
    std::uint32_t const rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

}  // namespace detail

/// Two bytes, bfloat16. It has no arithmetic: convert to float and back.
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

    /// Compares numbers: +0 equals -0, NaN equals nothing.
    friend constexpr bool operator==(bfloat16 a, bfloat16 b) noexcept { return static_cast<float>(a) == static_cast<float>(b); }

  private:
    std::uint16_t bits_ = 0;
};
static_assert(sizeof(bfloat16) == 2);

namespace detail {

/// Converts binary16 to binary32, exactly; a signalling NaN becomes quiet, as with F16C. It has no branches and no subnormal
/// operands, so it vectorises and does not depend on the flush-to-zero mode.
constexpr float float_from_half_bits(std::uint16_t bits) noexcept {
    std::uint32_t const sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    std::uint32_t const magnitude = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
    std::uint32_t const rebiased = magnitude + ((127u - 15u) << 23);
    std::uint32_t const quiet = (bits & 0x03ffu) != 0 ? 0x00400000u : 0u;
    std::uint32_t const special = (magnitude | 0x7f800000u) | quiet;
    // A subnormal is 2^-14 * (1 + m) - 2^-14 = m * 2^-14, which binary32 holds exactly.
    float const normalised = std::bit_cast<float>(magnitude + (113u << 23)) - std::bit_cast<float>(113u << 23);
    std::uint32_t const exponent = bits & 0x7c00u;
    std::uint32_t const value =
        exponent == 0 ? std::bit_cast<std::uint32_t>(normalised) : (exponent == 0x7c00u ? special : rebiased);
    return std::bit_cast<float>(value | sign);
}

/// Rounds binary32 to binary16, to nearest, ties to even; 65520 and beyond become infinity; a NaN keeps its upper payload and
/// becomes quiet.
constexpr std::uint16_t half_bits_from_float(float value) noexcept {
    std::uint32_t const bits = std::bit_cast<std::uint32_t>(value);
    std::uint32_t const sign = (bits >> 16) & 0x8000u;
    std::uint32_t const magnitude = bits & 0x7fffffffu;
    std::uint32_t const nan = 0x7e00u | ((magnitude >> 13) & 0x03ffu);
    // Adding 0.5 puts the unit of a subnormal half at the last place of the sum: the adder rounds, to even.
    float const shifted = std::bit_cast<float>(magnitude) + 0.5f;
    std::uint32_t const subnormal = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f);
    std::uint32_t const odd = (magnitude >> 13) & 1u;
    std::uint32_t const normal = (magnitude - ((127u - 15u) << 23) + 0x0fffu + odd) >> 13;
    std::uint32_t const finite = magnitude < (113u << 23) ? subnormal : normal;
    std::uint32_t const half = magnitude > 0x7f800000u ? nan : (magnitude >= 0x477ff000u ? 0x7c00u : finite);
    return static_cast<std::uint16_t>(half | sign);
}

}  // namespace detail

/// Two bytes, binary16. It has no arithmetic: convert to float and back.
class half {
  public:
    constexpr half() noexcept = default;
    constexpr explicit half(float value) noexcept : bits_(detail::half_bits_from_float(value)) {}
    constexpr explicit operator float() const noexcept { return detail::float_from_half_bits(bits_); }

    static constexpr half from_bits(std::uint16_t bits) noexcept {
        half result;
        result.bits_ = bits;
        return result;
    }
    constexpr std::uint16_t bits() const noexcept { return bits_; }

    /// Compares numbers: +0 equals -0, NaN equals nothing.
    friend constexpr bool operator==(half a, half b) noexcept { return static_cast<float>(a) == static_cast<float>(b); }

  private:
    std::uint16_t bits_ = 0;
};
static_assert(sizeof(half) == 2);

}  // namespace muster
