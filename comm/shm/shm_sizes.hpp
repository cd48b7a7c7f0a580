// Sizes by which an operation's schedule is chosen and cut.
#pragma once

#include <cstddef>

namespace muster::shm {

/// What is done in one call.
inline constexpr std::size_t budget_bytes = std::size_t{4} << 20;
inline constexpr std::size_t line_bytes = 64;
inline constexpr std::size_t page_bytes = 4096;

}  // namespace muster::shm
