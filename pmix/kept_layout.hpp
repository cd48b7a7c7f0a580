// The memory in which ranks keep their state: a file without a name, held by the node's keeper or by the parent of the launcher.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

/// Each rank has a part of the file, whose number need not be its own: a page for what it and the keeper tell each other, then some slots for copies of its state. Only what is written takes memory.
namespace muster::kept {

constexpr std::uint64_t part_bytes = std::uint64_t{1} << 42, most_parts = std::uint64_t{1} << 20;
constexpr std::size_t page_bytes = 4096, line_bytes = 64, slots = 4;
constexpr std::uint64_t slot_bytes = part_bytes / slots - page_bytes;

constexpr std::uint64_t half = 0;                              ///< being written, or never written
constexpr std::uint64_t whole = 0x32'74'73'6b'72'74'73'6dULL;  // "mstrkst2"
constexpr std::uint64_t held = whole + 1;                      ///< whole, and the keeper still needs it

/// The first page of a part. Its owner has locked the first byte (F_OFD_SETLK).
struct control {
    std::atomic<std::uint64_t> wanted;  ///< the first commit of this step or a later one is to be held; 0: none
};

/// Holds who committed a part: a rank of one generation of the run. A number alone may be used again by another world.
struct origin {
    std::uint64_t generation = 0, rank = 0, world_size = 1;
    bool operator==(origin const&) const = default;
};

/// The first page of a slot; the copy is behind it.
struct head {
    std::atomic<std::uint64_t> ready;  ///< half, whole or held
    std::uint64_t number;              ///< of commits by all processes that have had this part; 0: never written
    std::uint64_t step, bytes, sum;
    origin by;
};

constexpr std::uint64_t place_of(std::uint64_t part) noexcept {
    return part * part_bytes;
}
constexpr std::uint64_t place_of(std::uint64_t part, std::size_t slot) noexcept {
    return place_of(part) + page_bytes + slot * slot_bytes;
}

/// /proc shows the memory file under a name that begins with this.
constexpr char const* memory_mark = "/memfd:muster-state";

inline unique_fd make_memory() {
    unique_fd file(::memfd_create("muster-state", MFD_CLOEXEC));
    if (!file) throw_system("memfd_create", "for the state that is kept");
    return file;
}

/// The lock by which the owner of a part shows that it lives.
inline struct flock owner_lock(std::uint64_t part) noexcept {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(place_of(part));
    lock.l_len = 1;
    return lock;
}

/// Checksum of lines of 64 bytes. Sums and sums of sums: a line that is missing, another's or in another place changes them.
class line_sums {
  public:
    void add(std::byte const* from, std::size_t bytes) noexcept {
        for (std::size_t at = 0; at < bytes; at += line_bytes) {
            std::array<std::uint64_t, 8> line;
            std::memcpy(line.data(), from + at, line_bytes);
            for (std::size_t i = 0; i < 8; ++i) sum_[i] += line[i];
            for (std::size_t i = 0; i < 8; ++i) sums_[i] += sum_[i];
        }
    }

    /// Copies whole lines to a multiple of 64, with stores that need not read what was there, and so no slower than memcpy.
    void copy(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
#ifdef __SSE2__
        __m128i sum[4], sums[4];
        std::memcpy(sum, sum_.data(), sizeof sum);
        std::memcpy(sums, sums_.data(), sizeof sums);
        for (std::size_t at = 0; at < bytes; at += line_bytes)
            for (std::size_t i = 0; i < 4; ++i) {
                auto const part = _mm_loadu_si128(reinterpret_cast<__m128i const*>(from + at) + i);
                _mm_stream_si128(reinterpret_cast<__m128i*>(to + at) + i, part);
                sum[i] = _mm_add_epi64(sum[i], part);
                sums[i] = _mm_add_epi64(sums[i], sum[i]);
            }
        _mm_sfence();
        std::memcpy(sum_.data(), sum, sizeof sum);
        std::memcpy(sums_.data(), sums, sizeof sums);
#else
        std::memcpy(to, from, bytes);
        add(to, bytes);
#endif
    }
    std::uint64_t value() const noexcept {
        std::uint64_t all = whole;
        for (std::size_t i = 0; i < 8; ++i) all = (all ^ sum_[i]) * 0x9e3779b97f4a7c15ULL + sums_[i];
        return all;
    }

  private:
    std::array<std::uint64_t, 8> sum_{}, sums_{};
};

}  // namespace muster::kept
