#include "io/tree/running_checksum.hpp"

#include <xxhash.h>

#include <new>

namespace muster {

void running_checksum_traits::close(type state) noexcept {
    XXH3_freeState(static_cast<XXH3_state_t*>(state));
}

running_checksum::running_checksum() : state_(XXH3_createState()) {
    if (!state_) throw std::bad_alloc();
    reset();
}

void running_checksum::reset() noexcept {
    XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_.get()));
}

void running_checksum::add(std::span<std::byte const> bytes) noexcept {
    XXH3_64bits_update(static_cast<XXH3_state_t*>(state_.get()), bytes.data(), bytes.size());
}

std::uint64_t running_checksum::value() const noexcept {
    return XXH3_64bits_digest(static_cast<XXH3_state_t const*>(state_.get()));
}

}  // namespace muster
