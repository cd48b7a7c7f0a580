// The vector instructions that the kernels of this folder may use on this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace muster {

/// `avx2` includes F16C, `avx512` the F, BW, DQ and VL groups.
enum class simd : std::uint8_t { baseline, avx2, avx512 };
std::string_view to_string(simd level) noexcept;

/// Returns what processor and operating system offer, asked once; the last is the best.
std::span<simd const> available_simd() noexcept;
simd best_simd() noexcept;

/// Copies with streaming stores, which leave the lines in no cache of this processor: another one reads them faster than lines that it must fetch from
/// there. A processor that sees a later store sees them too. `to` is aligned to 64 bytes. Without such stores the same as memcpy.
void copy_streaming(void* to, void const* from, std::size_t bytes, simd level) noexcept;
void copy_streaming(void* to, void const* from, std::size_t bytes) noexcept;

/// Copies what this processor reads again or another one reads from its caches, by vector stores where these are faster than the C library's.
void copy_cached(void* to, void const* from, std::size_t bytes, simd level) noexcept;
void copy_cached(void* to, void const* from, std::size_t bytes) noexcept;

}  // namespace muster
