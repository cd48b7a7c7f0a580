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

std::string xxh3_128_digits(std::span<std::uint8_t const> bytes) {
    xxh3_128_stream stream;
    stream.add(bytes);
    return stream.digits();
}

void xxh3_128_stream::closer::operator()(void* state) const noexcept {
    XXH3_freeState(static_cast<XXH3_state_t*>(state));
}

xxh3_128_stream::xxh3_128_stream() : state_(XXH3_createState()) {
    if (state_ == nullptr || XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_.get())) != XXH_OK)
        throw library_error("xxHash", "XXH3_128bits_reset", 1, "no memory");
}

void xxh3_128_stream::add(std::span<std::uint8_t const> bytes) noexcept {
    XXH3_128bits_update(static_cast<XXH3_state_t*>(state_.get()), bytes.data(), bytes.size());
}

std::string xxh3_128_stream::digits() const {
    XXH128_hash_t const hash = XXH3_128bits_digest(static_cast<XXH3_state_t const*>(state_.get()));
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
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
