// The choice of compute kernels: the fastest that this processor can run, or those named.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "bench/network/kernel_table.hpp"

namespace muster {

/// A row of the static table of instruction sets, the fastest first.
struct kernel_choice {
    std::string_view name;  ///< "avx512", "avx2", "baseline"
    bool supported;         ///< by this processor and its operating system
    kernel_table const* kernels;
};

/// All that this build holds; the last is supported everywhere. Pure, thread-safe.
std::span<kernel_choice const> kernel_choices();

/// The kernels named, or the first supported ones for "" or "auto". Throws errc::usage on an unknown name and errc::unavailable
/// on one that this processor cannot run.
kernel_table const& choose_kernels(std::string_view name = {});

}  // namespace muster
