#include "comm/tensor/simd.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <array>
#include <cstring>

namespace muster {

namespace {

/// Between these sizes the C library's memcpy is a string instruction, which is slower there by a tenth, and as fast or faster above (measured at 16 and 32 KiB on
/// an AMD EPYC of family 25, with lines in second-level caches).
constexpr std::size_t least_by_lines = 2048, most_by_lines = std::size_t{32} << 10;

struct levels {
    std::array<simd, 3> known{simd::baseline, simd::avx2, simd::avx512};
    std::size_t count = 1;
};

#if defined(__x86_64__)
bool has_f16c() noexcept {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & (1u << 29)) != 0;
}
#endif

levels ask_processor() noexcept {
    levels found;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && has_f16c()) found.count = 2;
    if (found.count == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        found.count = 3;
#endif
    return found;
}

}  // namespace

std::string_view to_string(simd level) noexcept {
    switch (level) {
        case simd::baseline: return "baseline";
        case simd::avx2: return "avx2";
        case simd::avx512: return "avx512";
    }
    return "unknown";
}

std::span<simd const> available_simd() noexcept {
    static levels const found = ask_processor();
    return std::span(found.known).first(found.count);
}

simd best_simd() noexcept {
    return available_simd().back();
}

#if defined(__x86_64__)
namespace {

constexpr std::size_t line = 64;

void stream_lines(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += sizeof(__m128i))
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), _mm_loadu_si128(reinterpret_cast<__m128i const*>(from + at)));
}

__attribute__((target("avx2"))) void stream_lines_avx2(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += sizeof(__m256i))
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at), _mm256_loadu_si256(reinterpret_cast<__m256i const*>(from + at)));
}

__attribute__((target("avx512f"))) void stream_lines_avx512(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += sizeof(__m512i))
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), _mm512_loadu_si512(from + at));
}

void copy_lines(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
    std::memcpy(to, from, bytes);
}

__attribute__((target("avx2"))) void copy_lines_avx2(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += sizeof(__m256i))
        _mm256_store_si256(reinterpret_cast<__m256i*>(to + at), _mm256_loadu_si256(reinterpret_cast<__m256i const*>(from + at)));
}

__attribute__((target("avx512f"))) void copy_lines_avx512(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += sizeof(__m512i)) _mm512_store_si512(to + at, _mm512_loadu_si512(from + at));
}

}  // namespace

void copy_streaming(void* to, void const* from, std::size_t bytes, simd level) noexcept {
    std::size_t const lines = bytes / line * line;
    auto* const target = static_cast<std::byte*>(to);
    auto const* const source = static_cast<std::byte const*>(from);
    auto* const stream = level == simd::avx512 ? stream_lines_avx512 : level == simd::avx2 ? stream_lines_avx2 : stream_lines;
    stream(target, source, lines);
    if (lines < bytes) std::memcpy(target + lines, source + lines, bytes - lines);
    _mm_sfence();
}

void copy_cached(void* to, void const* from, std::size_t bytes, simd level) noexcept {
    if (bytes < least_by_lines || bytes > most_by_lines) {
        if (bytes != 0) std::memcpy(to, from, bytes);
        return;
    }
    auto* const target = static_cast<std::byte*>(to);
    auto const* const source = static_cast<std::byte const*>(from);
    std::size_t const before = (line - reinterpret_cast<std::uintptr_t>(to) % line) % line,
                      lines = (bytes - before) / line * line;
    if (before != 0) std::memcpy(target, source, before);
    auto* const copy = level == simd::avx512 ? copy_lines_avx512 : level == simd::avx2 ? copy_lines_avx2 : copy_lines;
    copy(target + before, source + before, lines);
    std::size_t const done = before + lines;
    if (done < bytes) std::memcpy(target + done, source + done, bytes - done);
}
#else
void copy_streaming(void* to, void const* from, std::size_t bytes, simd) noexcept {
    if (bytes != 0) std::memcpy(to, from, bytes);
}
void copy_cached(void* to, void const* from, std::size_t bytes, simd) noexcept {
    if (bytes != 0) std::memcpy(to, from, bytes);
}
#endif

void copy_streaming(void* to, void const* from, std::size_t bytes) noexcept {
    copy_streaming(to, from, bytes, best_simd());
}
void copy_cached(void* to, void const* from, std::size_t bytes) noexcept {
    copy_cached(to, from, bytes, best_simd());
}

}  // namespace muster
