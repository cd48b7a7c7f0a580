// Checksums of datasets: XXH3, 64 bits, seed 0 (xxHash 0.8 specification).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace muster {

/// XXH3-64 with seed 0 of the bytes. Pure, thread safe.
std::uint64_t xxh3_64(std::span<std::byte const> bytes) noexcept;
std::uint64_t xxh3_64(std::span<std::uint8_t const> bytes) noexcept;

/// XXH3-128 with seed 0 of a text.
std::string xxh3_128_digits(std::string_view text);

struct xxh3_state_closer {
    void operator()(void* state) const noexcept;
};
using xxh3_state = std::unique_ptr<void, xxh3_state_closer>;

/// XXH3-64 with seed 0 of bytes that come in pieces. One thread at a time.
class xxh3_64_stream {
  public:
    xxh3_64_stream();
    void reset() noexcept;  ///< begins anew
    void add(std::span<std::byte const> bytes) noexcept;
    std::uint64_t value() const noexcept;

  private:
    xxh3_state state_;
};

/// Likewise XXH3-128.
class xxh3_128_stream {
  public:
    xxh3_128_stream();
    void add(std::span<std::byte const> bytes) noexcept;
    std::string digits() const;  ///< 32 hexadecimal digits, as xxh128sum prints them

  private:
    xxh3_state state_;
};

/// The checksum of every block of `block_bytes` (the last may be short) of `bytes`, in order, into `out`.
/// `out` must have exactly one place a block, else errc::internal.
void block_checksums(std::span<std::uint8_t const> bytes, std::size_t block_bytes, std::span<std::uint64_t> out);

/// The checksum of a whole array from those of its blocks: XXH3-64 of the block checksums, 8 bytes each, little-endian.
std::uint64_t fold_checksums(std::span<std::uint64_t const> blocks);

/// 16 hexadecimal digits, most significant first (the canonical form that xxhsum prints).
std::string format_checksum(std::uint64_t checksum);

}  // namespace muster
