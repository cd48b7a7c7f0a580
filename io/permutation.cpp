#include "io/permutation.hpp"

#include <algorithm>
#include <bit>

namespace muster {

permutation::permutation(std::uint64_t size, std::uint64_t key) noexcept : size_(size) {
    unsigned const bits = std::max(8u, static_cast<unsigned>(std::bit_width(size == 0 ? 0 : size - 1)));
    low_bits_ = bits / 2;
    high_bits_ = bits - low_bits_;
    low_mask_ = (std::uint64_t{1} << low_bits_) - 1;
    for (std::size_t i = 0; i < rounds; ++i) keys_[i] = mix(key + (i + 1) * 0x9e3779b97f4a7c15u);
}

}  // namespace muster
