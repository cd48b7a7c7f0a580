// Random numbers of the benchmark: any rank can draw any of them in any order, as each follows from its number alone.
#pragma once

#include <cstdint>

namespace muster {

/// Draw number `index` of a stream: the finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014) over the key and a multiple of the golden ratio. The same arguments give the same bits on every machine.
/// Thread-safe.
class random_stream {
  public:
    /// Streams with different (seed, purpose, step) are independent for our ends.
    constexpr random_stream(std::uint64_t seed, std::uint64_t purpose, std::uint64_t step = 0) noexcept
        : key_(mix(mix(mix(seed + golden) ^ purpose) + step * golden)) {}

    constexpr std::uint64_t bits(std::uint64_t index) const noexcept { return mix(key_ + (index + 1) * golden); }

    /// Uniform in [0, 1), a multiple of 2^-24: exact in a float.
    constexpr float uniform(std::uint64_t index) const noexcept { return static_cast<float>(bits(index) >> 40) * 0x1p-24f; }

    /// What the stream is made of: all draws follow from it. For kernels of a GPU.
    constexpr std::uint64_t key() const noexcept { return key_; }

  private:
    static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
    static constexpr std::uint64_t mix(std::uint64_t z) noexcept {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    std::uint64_t key_;
};

}  // namespace muster
