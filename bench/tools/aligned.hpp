// Arrays that begin on a cache line.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <vector>

namespace muster {

/// Allocator for std::vector whose memory begins on a multiple of 64 bytes; large memory on one of 2 MiB, with huge pages where the
/// system gives them for the asking: matrices of many pages are read across their rows.
template <class T>
struct cache_line_allocator {
    using value_type = T;

    cache_line_allocator() = default;
    template <class U>
    cache_line_allocator(cache_line_allocator<U> const&) noexcept {}

    T* allocate(std::size_t count) {
        void* const memory = ::operator new(count * sizeof(T), alignment(count));
        if (is_large(count)) ::madvise(memory, count * sizeof(T), MADV_HUGEPAGE);  // advice: it may be declined
        return static_cast<T*>(memory);
    }
    void deallocate(T* p, std::size_t count) noexcept { ::operator delete(p, alignment(count)); }
    friend bool operator==(cache_line_allocator, cache_line_allocator) { return true; }

  private:
    static bool is_large(std::size_t count) noexcept { return count * sizeof(T) >= huge_page; }
    static std::align_val_t alignment(std::size_t count) noexcept { return std::align_val_t{is_large(count) ? huge_page : 64}; }
    static constexpr std::size_t huge_page = std::size_t{2} << 20;
};

template <class T>
using aligned_vector = std::vector<T, cache_line_allocator<T>>;

}  // namespace muster
