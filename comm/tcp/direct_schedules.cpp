// Schedules in which each rank exchanges with each.
#include <algorithm>
#include <array>
#include <cstring>

#include "comm/backend/argument_checks.hpp"
#include "comm/backend/rank_parts.hpp"
#include "comm/tcp/schedules.hpp"
#include "comm/tensor/reduction_kernels.hpp"

namespace muster::tcp {

namespace {

/// All ranks together may receive this much of a tensor that is sent whole; above it two rounds of parts move less.
constexpr std::size_t whole_bytes_of_all_ranks = std::size_t{1} << 17;

/// The size of a segment: large enough that the processor works on one while another is on its way, small enough for its cache.
constexpr std::size_t segment_bytes = std::size_t{1} << 20;
constexpr std::size_t segments_under_way = 2;

/// Returns whether each rank reduces all elements. The same on all ranks.
bool goes_whole(world const& among, collective const& what) noexcept {
    return what.what != collective::kind::reducescatter &&
           what.in.bytes() * static_cast<std::size_t>(among.size()) <= whole_bytes_of_all_ranks;
}

/// Returns one of the other ranks, from the next one on: at each step every rank receives from another one, and sends to another
/// one.
int peer_at(world const& among, int k) noexcept {
    return (among.rank() + k) % among.size();
}
int peer_before(world const& among, int k) noexcept {
    return (among.rank() - k + among.size()) % among.size();
}

/// Combines `count` elements of all ranks in their order: this rank's at `own`, those of peer_at(k) at `theirs(k)`.
template <typename Theirs>
void combine_all(world const& among, collective const& what, void const* own, Theirs&& theirs, void* out, std::size_t count) {
    std::array<void const*, 64> few;
    std::vector<void const*> many;
    auto const ranks = static_cast<std::size_t>(among.size());
    if (ranks > few.size()) many.resize(ranks);
    std::span<void const*> const sources = ranks > few.size() ? std::span(many) : std::span(few).first(ranks);
    for (int k = 0; k < among.size(); ++k) sources[static_cast<std::size_t>(peer_at(among, k))] = k == 0 ? own : theirs(k);
    combine(what.in.type, what.how, sources, out, count, what.scale);
}

schedule reduce_whole(world& among, job& of) {
    collective const& what = of.what;
    std::size_t const bytes = what.in.bytes();
    scratch const received(among, bytes * static_cast<std::size_t>(among.size() - 1));
    auto const place_of = [&](int k) { return received.at(static_cast<std::size_t>(k - 1) * bytes); };
    frame const head = head_of(of, what.in.count, bytes);
    transfers all;
    for (int k = 1; k < among.size(); ++k)
        among.send(peer_before(among, k), of.owner, head, static_cast<std::byte const*>(what.in.data), all);
    for (int k = 1; k < among.size(); ++k) among.receive(peer_at(among, k), of.owner, head, place_of(k), all);
    of.posted = true;
    co_await all;
    if (what.in.count != 0) combine_all(among, what, what.in.data, place_of, what.out.data, what.in.count);
}

/// Each link carries these messages, both ways: unreduced segments 0 and 1, then reduced 0, unreduced 2, reduced 1, unreduced 3 …
schedule reduce_in_segments(world& among, job& of) {
    collective const& what = of.what;
    detail::segmented const parts(what, among.size(), segment_bytes);
    bool const gathers = what.what == collective::kind::allreduce;
    std::size_t const out_begins = gathers ? 0 : share_of(what.in.count, among.size(), among.rank()).first;
    std::size_t const unit = size_of(what.in.type);
    std::size_t const most = parts.part(0, 0).count * unit;
    auto const others = static_cast<std::size_t>(among.size() - 1);
    scratch const memory(among, most * others * segments_under_way);
    auto const place_of = [&](std::size_t segment, int k) {
        return memory.at((segment % segments_under_way * others + static_cast<std::size_t>(k - 1)) * most);
    };
    auto const head = [&](element_range const& part, unsigned step) {
        return head_of(of, what.in.count, part.count * unit, step);
    };
    std::array<transfers, segments_under_way> reducing;
    transfers gathering;
    auto const begin = [&](std::size_t segment) {
        if (segment >= parts.count()) return;
        transfers& counts = reducing[segment % segments_under_way];
        auto const own = parts.part(segment, among.rank());
        for (int k = 1; k < among.size(); ++k) {
            int const to = peer_before(among, k), from = peer_at(among, k);
            if (auto const theirs = parts.part(segment, to); theirs.count != 0)
                among.send(to, of.owner, head(theirs, 0), element_at(what.in, theirs.first), counts);
            if (own.count != 0) among.receive(from, of.owner, head(own, 0), place_of(segment, k), counts);
        }
    };
    for (std::size_t segment = 0; segment < segments_under_way; ++segment) begin(segment);
    for (std::size_t segment = 0; segment < parts.count(); ++segment) {
        co_await reducing[segment % segments_under_way];
        auto const own = parts.part(segment, among.rank());
        std::byte* const result = element_at(what.out, own.first - out_begins);
        auto const theirs_at = [&](int k) { return place_of(segment, k); };
        if (own.count != 0) combine_all(among, what, element_at(what.in, own.first), theirs_at, result, own.count);
        for (int k = 1; gathers && k < among.size(); ++k) {
            int const to = peer_before(among, k), from = peer_at(among, k);
            if (own.count != 0) among.send(to, of.owner, head(own, 1), result, gathering);
            if (auto const theirs = parts.part(segment, from); theirs.count != 0)
                among.receive(from, of.owner, head(theirs, 1), element_at(what.out, theirs.first), gathering);
        }
        begin(segment + segments_under_way);
    }
    of.posted = true;
    co_await gathering;
}

}  // namespace

frame head_of(job const& of, std::size_t count, std::size_t bytes, unsigned step) {
    frame head;
    head.step = static_cast<std::uint16_t>(step);
    head.sequence = of.sequence;
    head.signature = signature_of(of.what);
    head.count = count;
    head.bytes = bytes;
    return head;
}

schedule reduce_directly(world& among, job& of) {
    return goes_whole(among, of.what) ? reduce_whole(among, of) : reduce_in_segments(among, of);
}

// ---- collectives without a reduction

/// It also sends messages without elements: if the other rank sends some, both see that.
schedule exchange_pairwise(world& among, job& of) {
    collective const& what = of.what;
    auto const all = detail::transfers_of(what, among.size());
    std::size_t const unit = size_of(what.in.type);
    bool const of_two = what.what == collective::kind::sendrecv;
    transfers counts;
    auto const own = all[static_cast<std::size_t>(among.rank())];
    if (own.received.count != 0 && part_of(what.in, own.sent).data != part_of(what.out, own.received).data)
        std::memcpy(element_at(what.out, own.received.first), element_at(what.in, own.sent.first), own.received.count * unit);
    for (int k = 1; k < among.size(); ++k) {
        int const to = peer_before(among, k), from = peer_at(among, k);
        auto const& there = all[static_cast<std::size_t>(to)].sent;
        auto const& here = all[static_cast<std::size_t>(from)].received;
        if (!of_two || to == what.root)
            among.send(to, of.owner, head_of(of, there.count, there.count * unit), element_at(what.in, there.first), counts);
        if (!of_two || from == what.root)
            among.receive(from, of.owner, head_of(of, here.count, here.count * unit), element_at(what.out, here.first), counts);
    }
    of.posted = true;
    co_await counts;
}

}  // namespace muster::tcp
