// Measured tensors: their memory, on host or device, and their elements, whole numbers whose every reduction is exact in their type.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "bench/collectives/collectives_case.hpp"
#include "comm/cuda/handles.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster {

/// The rule by which ranks make their elements: element i of tensor `which` on `rank` is
///     h = ((i + 2654435 which + 40503 seed + 1000003 rank) * 2654435761 mod 2^32) >> 26      (multiplicative hashing, Knuth 6.4)
///     rank >= active ? (product ? 1 : 0) : product ? 1 + (h >> 5) : scale * (h & mask)
/// all of it modulo 2^32. The peers (bench/peers) know the same rule; it is in the order that begins a measurement.
struct value_rule {
    unsigned mask = 63;
    unsigned scale = 1;
    unsigned active = 1;
    bool product = false;
    bool operator==(value_rule const&) const = default;
};

/// The widest rule under which sums, averages and products over so many ranks, and all that comes between, are exact in the type.
value_rule rule_for(collective_case const& of, int ranks) noexcept;

/// "kind allreduce f32 sum 0 63 1 2 0": the order that tells a rank what is measured, with the rule.
std::string to_order(collective_case const& of, value_rule const& rule);

/// Names a tensor of a sample.
struct sample_place {
    unsigned which = 0;
    unsigned seed = 0;
};

/// Elements `first` and on of the rank's tensor.
void fill_values(value_rule const& rule, dtype type, void* to, std::size_t count, std::size_t first, sample_place at, int rank);

/// Returns how many of `count` elements are not elements `first` and on of that rank's tensor.
std::size_t count_wrong(value_rule const& rule, dtype type, void const* got, std::size_t count, std::size_t first,
                        sample_place at, int rank);

/// Returns how many are not the reduction of these elements of all ranks.
std::size_t count_wrong_reduced(value_rule const& rule, dtype type, reduction how, void const* got, std::size_t count,
                                std::size_t first, sample_place at, int ranks);

// Tensors of a measurement, in host or device memory, which the host fills and reads.

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

/// Memory of the tensors of a measurement: plain, from communicator::allocate(), or on the GPU.
enum class memory_of_tensors { plain, allocated, device };
std::string_view to_string(memory_of_tensors memory) noexcept;

/// Memory of so many bytes, beginning on a cache line. The device, if there is one, outlives it.
class collectives_memory {
  public:
    /// Allocates and touches it, in host memory if `on` is null. Throws cuda_error.
    collectives_memory(std::size_t bytes, cuda::device const* on);

    /// A part of host memory, not owned, that outlives this.
    collectives_memory(std::byte* lent, std::size_t bytes) noexcept;

    /// `fill(std::byte*)` writes all bytes, in host memory; what it writes is in this memory when the call returns.
    template <typename Fill>
    void write(Fill&& fill) {
        if (on_ == nullptr) {
            fill(host_);
            return;
        }
        std::vector<std::byte> stage(bytes_);
        fill(stage.data());
        upload(stage.data());
    }

    /// `look(std::byte const*)` reads all bytes, in host memory; returns what it returns.
    template <typename Look>
    auto read(Look&& look) const {
        if (on_ == nullptr) return look(static_cast<std::byte const*>(host_));
        std::vector<std::byte> stage(bytes_);
        download(stage.data());
        return look(static_cast<std::byte const*>(stage.data()));
    }

    /// Elements from byte `offset` on.
    tensor_view view(std::size_t offset, std::size_t count, dtype type);

    std::size_t bytes() const noexcept { return bytes_; }

  private:
    void upload(std::byte const* from);
    void download(std::byte* to) const;

    std::size_t bytes_;
    cuda::device const* on_ = nullptr;
    aligned_vector<std::byte> owned_;
    std::byte* host_ = nullptr;  // owned or lent
    cuda::unique_memory device_;
};

}  // namespace muster
