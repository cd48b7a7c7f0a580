// The vector instructions that the kernels of this folder may use on this machine.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace muster {

/// `avx2` includes F16C, `avx512` the F, BW, DQ and VL groups.
enum class simd : std::uint8_t { baseline, avx2, avx512 };
std::string_view to_string(simd level) noexcept;

/// What processor and operating system offer, asked once; the last is the best.
std::span<simd const> available_simd() noexcept;
simd best_simd() noexcept;

}  // namespace muster
