#include "comm/tensor/simd.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <array>

namespace muster {

namespace {

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

}  // namespace muster
