#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "comm/backend/argument_checks.hpp"

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

namespace muster::detail {

std::string fault_of_memory(tensor_view const& view, std::string_view role) {
    if (view.data == nullptr && view.count != 0) return fmt::format("\"{}\" has {} elements at a null pointer", role, view.count);
    if (reinterpret_cast<std::uintptr_t>(view.data) % size_of(view.type) != 0)
        return fmt::format("\"{}\" at {} is not aligned for {}", role, view.data, to_string(view.type));
    return {};
}

namespace {

constexpr std::size_t most_bytes = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());

std::string fault_of_view(tensor_view const& view, std::string_view role, argument_place const& place) {
    if (!(view.where == memory_kind::host ? place.host_memory : place.device_memory))
        return fmt::format("\"{}\" lies in {} memory, this backend works on {} memory", role, to_string(view.where),
                           place.host_memory ? "host" : "device");
    if (is_only_moved(view.type))
        return fmt::format("\"{}\" is {}, which only an exchange moves; give its bytes as u8", role, to_string(view.type));
    if (size_of(view.type) == 0) return fmt::format("\"{}\" has the unknown type {}", role, static_cast<int>(view.type));
    if (view.count > most_bytes / size_of(view.type))
        return fmt::format("\"{}\" has {} elements of {}, more than memory can hold", role, view.count, to_string(view.type));
    return fault_of_memory(view, role);
}

std::string fault_of_views(collective const& what, argument_place const& place) {
    if (auto fault = fault_of_view(what.in, "in", place); !fault.empty()) return fault;
    if (auto fault = fault_of_view(what.out, "out", place); !fault.empty()) return fault;
    if (what.in.type != what.out.type)
        return fmt::format("\"in\" is {}, \"out\" is {}", to_string(what.in.type), to_string(what.out.type));
    if (what.in.count != 0 && what.out.count != 0 && what.in.where != what.out.where)
        return fmt::format("\"in\" lies in {} memory, \"out\" in {} memory", to_string(what.in.where), to_string(what.out.where));
    return {};
}

std::string fault_of_reduction(collective const& what) {
    if (what.how == reduction::adasum)
        return "adasum is a reduction of exchange::allreduce only; call adasum() (comm/gradients/adasum.hpp)";
    if (static_cast<unsigned>(what.how) > static_cast<unsigned>(reduction::adasum))
        return fmt::format("{} is no reduction", static_cast<unsigned>(what.how));
    bool const floating = is_floating(what.in.type);
    if (what.how == reduction::average && !floating)
        return fmt::format("the average of {} is not an integer; reduce the sum and divide, or convert to f64",
                           to_string(what.in.type));
    if (!std::isfinite(what.scale.before) || !std::isfinite(what.scale.after))
        return fmt::format("the factors {} before and {} after are not both finite", what.scale.before, what.scale.after);
    if (!what.scale.is_one() && !floating)
        return fmt::format("the factors {} before and {} after would turn {} into no integers; scale by 1, or convert to f64",
                           what.scale.before, what.scale.after, to_string(what.in.type));
    return {};
}

std::string fault_of_allreduce(collective const& what) {
    if (what.in.count != what.out.count) return fmt::format("\"in\" has {} elements, \"out\" {}", what.in.count, what.out.count);
    if (what.in.data != what.out.data && overlap(what.in, what.out))
        return fmt::format("\"in\" ({}) and \"out\" ({}) of {} bytes overlap; give the same memory twice, or apart", what.in.data,
                           what.out.data, what.in.bytes());
    return fault_of_reduction(what);
}

std::string fault_of_reducescatter(collective const& what, argument_place const& place) {
    element_range const share = share_of(what.in.count, place.size, place.rank);
    if (what.out.count != share.count)
        return fmt::format("\"in\" has {} elements, so rank {} of {} gets {} and \"out\" has {}", what.in.count, place.rank,
                           place.size, share.count, what.out.count);
    void const* const own_place = part_of(what.in, share).data;
    if (what.out.data != own_place && overlap(what.in, what.out))
        return fmt::format("\"out\" ({}) lies within \"in\" ({}) but not at this rank's share ({})", what.out.data, what.in.data,
                           own_place);
    return fault_of_reduction(what);
}

/// Sets `sum` to the sum of the counts and returns "", or returns what is wrong with them.
std::string sum_up(std::span<std::size_t const> counts, std::string_view role, tensor_view const& view, int size,
                   std::size_t& sum) {
    if (counts.size() != static_cast<std::size_t>(size))
        return fmt::format("\"{}\" has {} entries for {} ranks", role, counts.size(), size);
    sum = 0;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
        if (counts[rank] > most_bytes / size_of(view.type) - sum)
            return fmt::format("\"{}\" asks for {} elements of {} with rank {}, more than memory can hold", role, counts[rank],
                               to_string(view.type), rank);
        sum += counts[rank];
    }
    return {};
}

std::string fault_of_allgather(collective const& what, argument_place const& place) {
    auto const ranks = static_cast<std::size_t>(place.size);
    std::size_t first = static_cast<std::size_t>(place.rank) * what.in.count;
    if (what.receive_counts.empty()) {
        if (what.out.count % ranks != 0 || what.out.count / ranks != what.in.count)
            return fmt::format("\"in\" has {} elements, so \"out\" needs {} of them for {} ranks and has {}", what.in.count,
                               what.in.count * ranks, place.size, what.out.count);
    } else {
        std::size_t sum = 0;
        if (auto fault = sum_up(what.receive_counts, "counts", what.out, place.size, sum); !fault.empty()) return fault;
        auto const own = static_cast<std::size_t>(place.rank);
        if (what.in.count != what.receive_counts[own])
            return fmt::format("\"in\" has {} elements, \"counts\" says {} for rank {}", what.in.count, what.receive_counts[own],
                               place.rank);
        if (what.out.count != sum) return fmt::format("\"counts\" add up to {}, \"out\" has {} elements", sum, what.out.count);
        first = 0;
        for (std::size_t rank = 0; rank < own; ++rank) first += what.receive_counts[rank];
    }
    void const* const own_place = part_of(what.out, {first, what.in.count}).data;
    if (what.in.data != own_place && overlap(what.in, what.out))
        return fmt::format("\"in\" ({}) lies within \"out\" ({}) but not at this rank's place ({})", what.in.data, what.out.data,
                           own_place);
    return {};
}

std::string fault_of_overlap(collective const& what) {
    if (!overlap(what.in, what.out)) return {};
    return fmt::format("\"in\" ({}, {} bytes) and \"out\" ({}, {} bytes) overlap; give memory apart", what.in.data,
                       what.in.bytes(), what.out.data, what.out.bytes());
}

std::string fault_of_alltoall(collective const& what, argument_place const& place) {
    std::size_t sent = 0, received = 0;
    if (auto fault = sum_up(what.send_counts, "send_counts", what.in, place.size, sent); !fault.empty()) return fault;
    if (auto fault = sum_up(what.receive_counts, "receive_counts", what.out, place.size, received); !fault.empty()) return fault;
    if (sent != what.in.count) return fmt::format("\"send_counts\" add up to {}, \"in\" has {} elements", sent, what.in.count);
    if (received != what.out.count)
        return fmt::format("\"receive_counts\" add up to {}, \"out\" has {} elements", received, what.out.count);
    auto const own = static_cast<std::size_t>(place.rank);
    if (what.send_counts[own] != what.receive_counts[own])
        return fmt::format("rank {} sends itself {} elements and receives {} from itself", place.rank, what.send_counts[own],
                           what.receive_counts[own]);
    return fault_of_overlap(what);
}

std::string fault_of_rank(int rank, std::string_view role, int size) {
    if (rank >= 0 && rank < size) return {};
    return fmt::format("the {} {} does not lie in a world of {}", role, rank, size);
}

std::string fault_of_sendrecv(collective const& what, argument_place const& place) {
    if (auto fault = fault_of_rank(what.root, "peer", place.size); !fault.empty()) return fault;
    if (what.root == place.rank && what.in.count != what.out.count)
        return fmt::format("rank {} sends itself {} elements and receives {} from itself", place.rank, what.in.count,
                           what.out.count);
    return fault_of_overlap(what);
}

/// Returns whether it is a plain allreduce, for which fewer checks suffice: small ones take hardly longer than all checks do.
bool is_usual_allreduce(collective const& what, argument_place const& place) {
    tensor_view const &in = what.in, &out = what.out;
    auto const places = reinterpret_cast<std::uintptr_t>(in.data) | reinterpret_cast<std::uintptr_t>(out.data);
    return what.what == collective::kind::allreduce && what.how < reduction::adasum && what.scale.is_one() && place.host_memory &&
           in.where == memory_kind::host && out.where == memory_kind::host && in.type == dtype::f32 && out.type == dtype::f32 &&
           in.count == out.count && in.count <= most_bytes / sizeof(float) && in.data != nullptr && out.data != nullptr &&
           places % sizeof(float) == 0 && (in.data == out.data || !overlap(in, out));
}

}  // namespace

std::string fault_of(collective const& what, argument_place const& place) {
    using kind = collective::kind;
    if (is_usual_allreduce(what, place)) return {};
    if (what.what == kind::barrier) return {};
    if (what.what == kind::broadcast) {
        if (auto fault = fault_of_view(what.out, "inout", place); !fault.empty()) return fault;
        return fault_of_rank(what.root, "root", place.size);
    }
    if (auto fault = fault_of_views(what, place); !fault.empty()) return fault;
    switch (what.what) {
        case kind::allreduce: return fault_of_allreduce(what);
        case kind::reducescatter: return fault_of_reducescatter(what, place);
        case kind::allgather: return fault_of_allgather(what, place);
        case kind::alltoall: return fault_of_alltoall(what, place);
        case kind::sendrecv: return fault_of_sendrecv(what, place);
        case kind::broadcast:
        case kind::barrier: break;
    }
    return {};
}

std::string fault_of_set(std::span<int const> ranks, int size) {
    if (ranks.empty()) return "a process set needs at least one rank";
    std::vector<int> sorted(ranks.begin(), ranks.end());
    std::sort(sorted.begin(), sorted.end());
    for (int const rank : {sorted.front(), sorted.back()})
        if (auto fault = fault_of_rank(rank, "rank", size); !fault.empty()) return fault;
    auto const twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) return fmt::format("rank {} is given twice", *twice);
    return {};
}

}  // namespace muster::detail
