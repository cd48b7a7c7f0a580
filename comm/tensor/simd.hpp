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

/// What processor and operating system offer, asked once; the last is the best.
std::span<simd const> available_simd() noexcept;
simd best_simd() noexcept;

/// memcpy with streaming stores, which leave the lines in no cache of this processor: another one reads them faster than lines that it must fetch from
/// there. They are visible to who sees a store that follows. `to` is aligned to 64 bytes. As memcpy where the processor has no such stores.
void copy_streaming(void* to, void const* from, std::size_t bytes, simd level) noexcept;
void copy_streaming(void* to, void const* from, std::size_t bytes) noexcept;

/// memcpy for what this processor reads again or another one reads out of its caches, by vector stores where these are faster than the C library's.
void copy_cached(void* to, void const* from, std::size_t bytes, simd level) noexcept;
void copy_cached(void* to, void const* from, std::size_t bytes) noexcept;

}  // namespace muster
