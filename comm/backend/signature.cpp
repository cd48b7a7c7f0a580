#include "comm/backend/signature.hpp"

#include <fmt/format.h>

#include <bit>

namespace muster {

namespace {

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

std::uint32_t hash_of(collective const& what) noexcept {
    if (what.scale.is_one() && what.receive_counts.empty()) return 0;
    std::uint64_t hash =
        mix(mix(1, std::bit_cast<std::uint64_t>(what.scale.before)), std::bit_cast<std::uint64_t>(what.scale.after));
    if (what.what == collective::kind::allgather)
        for (std::size_t const count : what.receive_counts) hash = mix(hash, count);
    return static_cast<std::uint32_t>(hash >> 32);
}

constexpr std::uint64_t nibble(std::uint64_t value, unsigned place) noexcept {
    return (value & 15) << (4 * place);
}
constexpr unsigned nibble_of(std::uint64_t signature, unsigned place) noexcept {
    return static_cast<unsigned>(signature >> (4 * place)) & 15;
}

}  // namespace

std::uint64_t signature_of(collective const& what) noexcept {
    bool const reduces = what.what == collective::kind::allreduce || what.what == collective::kind::reducescatter;
    auto const root = what.what == collective::kind::broadcast ? static_cast<std::uint64_t>(what.root) & 0xfffff : 0;
    return nibble(static_cast<std::uint64_t>(what.what), 0) | nibble(static_cast<std::uint64_t>(what.in.type), 1) |
           nibble(reduces ? static_cast<std::uint64_t>(what.how) : 15, 2) | root << 12 | std::uint64_t{hash_of(what)} << 32;
}

bool counts_are_equal(collective const& what) noexcept {
    return what.what != collective::kind::alltoall && !(what.what == collective::kind::allgather && !what.receive_counts.empty());
}

std::string describe_signature(std::uint64_t signature, std::uint64_t count) {
    auto const what = static_cast<collective::kind>(nibble_of(signature, 0));
    auto text = std::string(to_string(what));
    if (what == collective::kind::barrier) return text;
    if (nibble_of(signature, 2) != 15) text += fmt::format(" ({})", to_string(static_cast<reduction>(nibble_of(signature, 2))));
    text += fmt::format(" of {} elements of {}", count, to_string(static_cast<dtype>(nibble_of(signature, 1))));
    if (what == collective::kind::broadcast) text += fmt::format(" from root {}", (signature >> 12) & 0xfffff);
    if (signature >> 32 != 0) text += fmt::format(" (factors and counts {:08x})", signature >> 32);
    return text;
}

}  // namespace muster
