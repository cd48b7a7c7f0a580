// Memory for reads and writes, aligned to pages: the kernel copies to and from other addresses at half the speed.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace muster {

/// Uninitialised. Move-only.
class aligned_bytes {
  public:
    static constexpr std::size_t alignment = 4096;

    aligned_bytes() = default;
    explicit aligned_bytes(std::size_t bytes) { grow(bytes); }

    std::byte* data() const noexcept { return memory_.get(); }
    std::size_t size() const noexcept { return size_; }
    std::span<std::byte> first(std::size_t bytes) const noexcept { return {memory_.get(), bytes}; }

    /// Makes room for so many bytes; what was in it is lost if it grows. Throws std::bad_alloc.
    void grow(std::size_t bytes) {
        if (bytes <= size_) return;
        std::size_t const rounded = (bytes + alignment - 1) / alignment * alignment;
        memory_.reset();
        size_ = 0;
        memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
        if (!memory_) throw std::bad_alloc();
        size_ = rounded;
    }

  private:
    struct release {
        void operator()(std::byte* memory) const noexcept { std::free(memory); }
    };
    std::unique_ptr<std::byte, release> memory_;
    std::size_t size_ = 0;
};

}  // namespace muster
