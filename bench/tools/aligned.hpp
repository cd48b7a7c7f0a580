// Arrays that begin on a cache line.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace muster {

/// Allocator for std::vector whose memory begins on a multiple of 64 bytes.
template <class T>
struct cache_line_allocator {
    using value_type = T;
    static constexpr std::align_val_t alignment{64};

    cache_line_allocator() = default;
    template <class U>
    cache_line_allocator(cache_line_allocator<U> const&) noexcept {}

    T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), alignment)); }
    void deallocate(T* p, std::size_t) noexcept { ::operator delete(p, alignment); }
    friend bool operator==(cache_line_allocator, cache_line_allocator) { return true; }
};

template <class T>
using aligned_vector = std::vector<T, cache_line_allocator<T>>;

}  // namespace muster
