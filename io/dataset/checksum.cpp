#include "io/dataset/checksum.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"

namespace muster {

namespace {

XXH3_state_t* state_of(xxh3_state const& state) noexcept {
    return static_cast<XXH3_state_t*>(state.get());
}

xxh3_state make_state() {
    xxh3_state state(XXH3_createState());
    if (!state) throw library_error("xxHash", "XXH3_createState", 1, "no memory");
    return state;
}

}  // namespace

std::uint64_t xxh3_64(std::span<std::byte const> bytes) noexcept {
    return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t xxh3_64(std::span<std::uint8_t const> bytes) noexcept {
    return xxh3_64(std::as_bytes(bytes));
}

std::string xxh3_128_digits(std::string_view text) {
    xxh3_128_stream stream;
    stream.add(std::as_bytes(std::span(text)));
    return stream.digits();
}

void xxh3_state_closer::operator()(void* state) const noexcept {
    XXH3_freeState(static_cast<XXH3_state_t*>(state));
}

xxh3_64_stream::xxh3_64_stream() : state_(make_state()) {
    reset();
}

void xxh3_64_stream::reset() noexcept {
    XXH3_64bits_reset(state_of(state_));
}

void xxh3_64_stream::add(std::span<std::byte const> bytes) noexcept {
    XXH3_64bits_update(state_of(state_), bytes.data(), bytes.size());
}

std::uint64_t xxh3_64_stream::value() const noexcept {
    return XXH3_64bits_digest(state_of(state_));
}

xxh3_128_stream::xxh3_128_stream() : state_(make_state()) {
    XXH3_128bits_reset(state_of(state_));
}

void xxh3_128_stream::add(std::span<std::byte const> bytes) noexcept {
    XXH3_128bits_update(state_of(state_), bytes.data(), bytes.size());
}

std::string xxh3_128_stream::digits() const {
    XXH128_hash_t const hash = XXH3_128bits_digest(state_of(state_));
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
