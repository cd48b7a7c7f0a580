// The checksum of bytes that come piece by piece: the same as xxh3_64() of all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/unique_handle.hpp"

namespace muster {

struct running_checksum_traits {
    using type = void*;
    static type null() noexcept { return nullptr; }
    static void close(type state) noexcept;
};

class running_checksum {
  public:
    running_checksum();  ///< Throws std::bad_alloc.
    void reset() noexcept;
    void add(std::span<std::byte const> bytes) noexcept;
    std::uint64_t value() const noexcept;

  private:
    unique_handle<running_checksum_traits> state_;
};

}  // namespace muster
