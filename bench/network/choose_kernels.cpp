#include "bench/network/choose_kernels.hpp"

#include <fmt/format.h>

#include <array>

#include "base/error.hpp"

namespace muster {

extern kernel_table const kernel_table_baseline;
#ifdef __x86_64__
extern kernel_table const kernel_table_avx2;
extern kernel_table const kernel_table_avx512;

namespace {
bool has_avx2() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
}
}  // namespace
#endif

std::span<kernel_choice const> kernel_choices() {
    static std::array const choices{
#ifdef __x86_64__
        kernel_choice{"avx512", has_avx512(), &kernel_table_avx512},
        kernel_choice{"avx2", has_avx2(), &kernel_table_avx2},
#endif
        kernel_choice{"baseline", true, &kernel_table_baseline},
    };
    return choices;
}

kernel_table const& choose_kernels(std::string_view name) {
    std::string known;
    for (auto const& choice : kernel_choices()) {
        known += fmt::format(" {}", choice.name);
        if (name.empty() || name == "auto") {
            if (choice.supported) return *choice.kernels;
        } else if (choice.name == name) {
            if (choice.supported) return *choice.kernels;
            throw error(errc::unavailable, fmt::format("this processor cannot run the {} kernels; use --kernels auto", name));
        }
    }
    throw error(errc::usage, fmt::format("no kernels named '{}'; give one of{}, or auto", name, known));
}

}  // namespace muster
