// A pseudo-random order of 0 … size-1 that needs no memory and is the same on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace muster {

/// The bijection position -> sample for a key. Defined so, with all arithmetic modulo 2^64:
///   mix(x): x ^= x>>30; x *= 0xbf58476d1ce4e5b9; x ^= x>>27; x *= 0x94d049bb133111eb; x ^= x>>31   (finalizer of SplitMix64)
///   round key i (from 0) = mix(key + (i+1) * 0x9e3779b97f4a7c15)
///   f(x, k): x += k; x *= 0xbf58476d1ce4e5b9; x ^= x>>32; x *= 0x94d049bb133111eb
///   b = max(8, bits of size-1); low = floor(b/2) bits, high = b - low bits
///   a Feistel network of 6 rounds on b bits, x = (L << low) | R with L of `high` bits, R of `low` bits:
///     even rounds L ^= top `high` bits of f(R, key_i), odd rounds R ^= top `low` bits of f(L, key_i)
///   repeated while the result is >= size (cycle walking: fewer than two turns on average for size > 128).
/// So any position is found in constant time and memory, for a resumed epoch and for any number of ranks. With 4 rounds a
/// chi-square test on pairs of neighbours tells the orders of 250 samples from random ones, with 6 none of ours does. Not for
/// secrets. Pure, thread safe.
class permutation {
  public:
    permutation(std::uint64_t size, std::uint64_t key) noexcept;

    std::uint64_t size() const noexcept { return size_; }

    /// The sample at `position`, which must be less than size().
    std::uint64_t operator()(std::uint64_t position) const noexcept;

    /// The position of `sample`, which must be less than size(): the inverse.
    std::uint64_t position_of(std::uint64_t sample) const noexcept;

    /// The samples at first, first + step, first + 2 * step, …, all less than size(), into `out`. About twice as fast as one by
    /// one.
    void fill(std::uint64_t first, std::uint64_t step, std::span<std::uint64_t> out) const noexcept;

    /// mix() above, for deriving keys.
    static std::uint64_t mix(std::uint64_t x) noexcept;

  private:
    static constexpr std::size_t rounds = 6;
    std::uint64_t encipher(std::uint64_t x) const noexcept;
    std::uint64_t decipher(std::uint64_t x) const noexcept;

    std::uint64_t size_;
    unsigned low_bits_;
    unsigned high_bits_;
    std::uint64_t low_mask_;
    std::array<std::uint64_t, rounds> keys_;
};

}  // namespace muster
