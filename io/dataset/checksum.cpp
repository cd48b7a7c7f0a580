#include "io/dataset/checksum.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"

namespace muster {

std::uint64_t xxh3_64(std::span<std::uint8_t const> bytes) noexcept {
    return XXH3_64bits(bytes.data(), bytes.size());
}

void block_checksums(std::span<std::uint8_t const> bytes, std::size_t block_bytes, std::span<std::uint64_t> out) {
    expect(block_bytes > 0 && out.size() == (bytes.size() + block_bytes - 1) / block_bytes, "one checksum a block");
    for (std::uint64_t& checksum : out) {
        std::size_t const size = std::min(block_bytes, bytes.size());
        checksum = xxh3_64(bytes.first(size));
        bytes = bytes.subspan(size);
    }
}

std::uint64_t fold_checksums(std::span<std::uint64_t const> blocks) {
    std::vector<std::uint8_t> bytes(blocks.size() * 8);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(blocks[i / 8] >> (8 * (i % 8)));
    return xxh3_64(bytes);
}

std::string format_checksum(std::uint64_t checksum) {
    return fmt::format("{:016x}", checksum);
}

}  // namespace muster
