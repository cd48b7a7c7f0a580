// Schedules of worlds in which not every rank exchanges with each: rings, recursive doubling, trees and chains; and the choice among all.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "comm/backend/rank_parts.hpp"
#include "comm/tcp/schedules.hpp"
#include "comm/tensor/reduction_kernels.hpp"

namespace muster::tcp {

namespace {

/// Up to this size a few rounds of whole tensors take less time than many rounds of parts.
constexpr std::size_t small_bytes = std::size_t{64} << 10;

/// The size of a piece that goes from rank to rank: the next rank gets it while the following piece is on its way.
constexpr std::size_t piece_bytes = std::size_t{256} << 10;

/// Returns the reduction of single steps: the divisor of an average is known only at the end.
reduction step_of(reduction how) noexcept {
    return how == reduction::average ? reduction::sum : how;
}

void combine_two(collective const& what, void const* first, void const* second, void* out, std::size_t count) {
    std::array<void const*, 2> const sources{first, second};
    combine(what.in.type, step_of(what.how), sources, out, count);
}

void finish_result(world const& among, collective const& what, void* data, std::size_t count) {
    if (what.how == reduction::average) divide(what.in.type, data, count, among.size());
    if (what.scale.after != 1) multiply(what.in.type, data, data, count, what.scale.after);
}

/// Copies this rank's part of a reduction, scaled, to `to`.
void copy_scaled(collective const& what, element_range const& part, std::byte* to) {
    if (part.count != 0) multiply(what.in.type, element_at(what.in, part.first), to, part.count, what.scale.before);
}

/// The neighbours in a ring, and the pieces of the parts that go round.
class ring {
  public:
    ring(world const& among, dtype type, std::vector<element_range> parts)
        : rank_(among.rank()), size_(among.size()), unit_(size_of(type)), parts_(std::move(parts)) {
        std::size_t most = 0;
        for (auto const& each : parts_) most = std::max(most, each.count);
        per_piece_ = std::max<std::size_t>(piece_bytes / unit_, 1);
        pieces_ = std::max<std::size_t>((most + per_piece_ - 1) / per_piece_, 1);
    }
    int left() const noexcept { return (rank_ - 1 + size_) % size_; }
    int right() const noexcept { return (rank_ + 1) % size_; }
    std::size_t pieces() const noexcept { return pieces_; }
    std::size_t longest_piece() const noexcept { return per_piece_ * unit_; }
    /// Returns a piece of the part that is `back` places behind this rank's.
    element_range piece(int back, std::size_t number) const noexcept {
        auto const& part = parts_[static_cast<std::size_t>(((rank_ - back) % size_ + size_) % size_)];
        std::size_t const begin = std::min(part.count, number * per_piece_);
        return {part.first + begin, std::min(part.count - begin, per_piece_)};
    }
    std::size_t bytes_of(element_range const& part) const noexcept { return part.count * unit_; }

  private:
    int rank_, size_;
    std::size_t unit_;
    std::vector<element_range> parts_;
    std::size_t per_piece_ = 1, pieces_ = 1;
};

std::vector<element_range> shares_of(world const& among, std::size_t count) {
    std::vector<element_range> shares;
    for (int rank = 0; rank < among.size(); ++rank) shares.push_back(share_of(count, among.size(), rank));
    return shares;
}

/// Sends every rank's part of `out` round once; this rank has its own already.
schedule gather_round(world& among, job& of, ring const& around, unsigned first_step) {
    std::vector<transfers> coming(around.pieces());
    transfers going;
    auto const head = [&](element_range const& part, int step) {
        return head_of(of, of.what.in.count, around.bytes_of(part), first_step + static_cast<unsigned>(step));
    };
    auto const post = [&](int step, std::size_t piece) {
        auto const sent = around.piece(step, piece), received = around.piece(step + 1, piece);
        among.send(around.right(), of.owner, head(sent, step), element_at(of.what.out, sent.first), going);
        among.receive(around.left(), of.owner, head(received, step), element_at(of.what.out, received.first), coming[piece]);
    };
    for (std::size_t piece = 0; piece < around.pieces(); ++piece) post(0, piece);
    for (int step = 0; step + 1 < among.size(); ++step)
        for (std::size_t piece = 0; piece < around.pieces(); ++piece) {
            co_await coming[piece];
            if (step + 2 < among.size()) post(step + 1, piece);
        }
    of.posted = true;
    co_await going;
}

/// Reduces every rank's share on its way to it: from the rank behind its owner on, each rank adds its own. `result` is where the
/// share goes.
schedule reduce_round(world& among, job& of, ring const& around, std::byte* result) {
    collective const& what = of.what;
    std::size_t const pieces = around.pieces(), length = around.longest_piece();
    scratch const memory(among, 3 * pieces * length);
    auto const buffer = [&](int which, std::size_t piece) {
        return memory.at((static_cast<std::size_t>(which) * pieces + piece) * length);
    };
    std::vector<transfers> coming(pieces), going(pieces);
    auto const head = [&](element_range const& part, int step) {
        return head_of(of, what.in.count, around.bytes_of(part), static_cast<unsigned>(step));
    };
    auto const receive = [&](int step, std::size_t piece) {
        auto const part = around.piece(step + 2, piece);
        among.receive(around.left(), of.owner, head(part, step), buffer(step % 2, piece), coming[piece]);
    };
    for (std::size_t piece = 0; piece < pieces; ++piece) {
        auto const part = around.piece(1, piece);
        copy_scaled(what, part, buffer(1, piece));
        among.send(around.right(), of.owner, head(part, 0), buffer(1, piece), going[piece]);
        receive(0, piece);
    }
    for (int step = 0; step + 1 < among.size(); ++step)
        for (std::size_t piece = 0; piece < pieces; ++piece) {
            co_await coming[piece];
            auto const part = around.piece(step + 2, piece);
            bool const last = step + 2 == among.size();
            std::byte* const theirs = buffer(step % 2, piece);
            std::byte* const to = last ? result + piece * length : theirs;
            copy_scaled(what, part, buffer(2, piece));
            combine_two(what, theirs, buffer(2, piece), to, part.count);
            if (last) {
                finish_result(among, what, to, part.count);
                continue;
            }
            co_await going[piece];  // the next piece arrives in its memory
            among.send(around.right(), of.owner, head(part, step + 1), theirs, going[piece]);
            receive(step + 1, piece);
        }
    for (auto const& each : going) co_await each;
}

}  // namespace

schedule reduce_in_a_ring(world& among, job& of) {
    collective const& what = of.what;
    ring const around(among, what.in.type, shares_of(among, what.in.count));
    bool const gathers = what.what == collective::kind::allreduce;
    auto const own = share_of(what.in.count, among.size(), among.rank());
    co_await reduce_round(among, of, around, element_at(what.out, gathers ? own.first : 0));
    if (gathers) co_await gather_round(among, of, around, static_cast<unsigned>(among.size()));
    of.posted = true;
}

schedule gather_in_a_ring(world& among, job& of) {
    collective const& what = of.what;
    std::vector<element_range> parts;
    for (auto const& each : detail::transfers_of(what, among.size())) parts.push_back(each.received);
    std::byte* const place = element_at(what.out, parts[static_cast<std::size_t>(among.rank())].first);
    if (what.in.count != 0 && place != what.in.data) std::memcpy(place, what.in.data, what.in.bytes());
    ring const around(among, what.in.type, std::move(parts));
    co_await gather_round(among, of, around, 0);
}

/// When two ranks exchange what they have so far, the lower one's comes first on both, so that all get the same bits. Ranks beyond
/// the largest power of two give theirs to one of the others first, and get the result at the end.
schedule reduce_by_doubling(world& among, job& of) {
    collective const& what = of.what;
    std::size_t const bytes = what.in.bytes(), count = what.in.count;
    int const rank = among.rank(), power = static_cast<int>(std::bit_floor(static_cast<unsigned>(among.size())));
    scratch const memory(among, 2 * bytes + 1);
    std::byte *const mine = memory.at(0), *const theirs = memory.at(bytes);
    auto const head = [&](unsigned step) { return head_of(of, count, bytes, step); };
    unsigned const last_step = 64;
    transfers counts;
    copy_scaled(what, {0, count}, mine);
    if (rank >= power) {
        among.send(rank - power, of.owner, head(0), mine, counts);
        among.receive(rank - power, of.owner, head(last_step), static_cast<std::byte*>(what.out.data), counts);
        of.posted = true;
        co_await counts;
        co_return;
    }
    bool const carries = rank + power < among.size();
    if (carries) {
        among.receive(rank + power, of.owner, head(0), theirs, counts);
        co_await counts;
        combine_two(what, mine, theirs, mine, count);
    }
    unsigned step = 1;
    for (int distance = 1; distance < power; distance *= 2, ++step) {
        int const with = rank ^ distance;
        among.send(with, of.owner, head(step), mine, counts);
        among.receive(with, of.owner, head(step), theirs, counts);
        co_await counts;
        combine_two(what, rank < with ? mine : theirs, rank < with ? theirs : mine, mine, count);
    }
    finish_result(among, what, mine, count);
    if (carries) among.send(rank + power, of.owner, head(last_step), mine, counts);
    of.posted = true;
    if (bytes != 0) std::memcpy(what.out.data, mine, bytes);
    co_await counts;
}

schedule broadcast_down_a_tree(world& among, job& of) {
    collective const& what = of.what;
    int const size = among.size(), place = (among.rank() - what.root + size) % size;
    auto const rank_at = [&](int where) { return (where + what.root) % size; };
    auto* const data = static_cast<std::byte*>(what.out.data);
    frame const head = head_of(of, what.out.count, what.out.bytes());
    transfers counts;
    int below = 1;  // ranks of the subtree: up to the lowest bit of the place
    while (below < size && (place & below) == 0) below *= 2;
    if (place != 0) {
        among.receive(rank_at(place - below), of.owner, head, data, counts);
        co_await counts;
    }
    for (int distance = below / 2; distance > 0; distance /= 2)
        if (place + distance < size) among.send(rank_at(place + distance), of.owner, head, data, counts);
    of.posted = true;
    co_await counts;
}

schedule broadcast_in_a_chain(world& among, job& of) {
    collective const& what = of.what;
    int const size = among.size(), place = (among.rank() - what.root + size) % size;
    int const from = (among.rank() - 1 + size) % size, to = (among.rank() + 1) % size;
    auto* const data = static_cast<std::byte*>(what.out.data);
    std::size_t const bytes = what.out.bytes(), pieces = (bytes + piece_bytes - 1) / piece_bytes;
    std::vector<transfers> coming(pieces);
    transfers going;
    auto const length = [&](std::size_t piece) { return std::min(piece_bytes, bytes - piece * piece_bytes); };
    auto const head = [&](std::size_t piece) { return head_of(of, what.out.count, length(piece)); };
    for (std::size_t piece = 0; place != 0 && piece < pieces; ++piece)
        among.receive(from, of.owner, head(piece), data + piece * piece_bytes, coming[piece]);
    for (std::size_t piece = 0; place + 1 < size && piece < pieces; ++piece) {
        co_await coming[piece];
        among.send(to, of.owner, head(piece), data + piece * piece_bytes, going);
    }
    of.posted = true;
    for (auto const& each : coming) co_await each;
    co_await going;
}

schedule schedule_of(world& among, job& of) {
    using kind = collective::kind;
    collective const& what = of.what;
    bool const direct = among.size() <= std::max(among.members().direct_ranks, 1);
    switch (what.what) {
        case kind::alltoall:
        case kind::sendrecv: return exchange_pairwise(among, of);
        case kind::allgather: return direct ? exchange_pairwise(among, of) : gather_in_a_ring(among, of);
        case kind::broadcast:
            return what.out.bytes() <= small_bytes ? broadcast_down_a_tree(among, of) : broadcast_in_a_chain(among, of);
        default: break;
    }
    if (direct) return reduce_directly(among, of);
    bool const small = what.what != kind::reducescatter && what.in.bytes() <= small_bytes;
    return small ? reduce_by_doubling(among, of) : reduce_in_a_ring(among, of);
}

}  // namespace muster::tcp
