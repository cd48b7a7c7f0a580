#include "io/loader/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/throw_error.hpp"
#include "io/loader/windowed_order.hpp"

namespace muster {

namespace {

void check(epoch_part const& part, std::size_t samples, spread_rule spread) {
    if (part.world < 1 || part.rank < 0 || part.rank >= part.world)
        throw_error(errc::usage, "sampler: rank {} of a world of {}; give 0 <= rank < world", part.rank, part.world);
    if (part.start > samples)
        throw_error(errc::usage, "sampler: epoch {} cannot resume after {} samples: it has {}; start at 0", part.epoch,
                    part.start, samples);
    if (spread == spread_rule::by_node &&
        (part.node.first < 0 || part.rank < part.node.first || part.rank - part.node.first >= part.node.count ||
         part.node.count > part.world - part.node.first))
        throw_error(errc::usage,
                    "sampler: rank {} of {} is not among the {} ranks of its node from {} on; give epoch_part::node the ranks of "
                    "this rank's node",
                    part.rank, part.world, part.node.count, part.node.first);
    if (spread != spread_rule::global && part.start % static_cast<std::size_t>(part.world) != 0 && part.start != samples)
        throw_error(errc::usage,
                    "sampler: a sharded epoch cannot resume after {} samples: that is no multiple of its {} ranks; resume with "
                    "the number of ranks that began it",
                    part.start, part.world);
}

std::uint64_t epoch_key(sampler_options const& options, std::uint64_t epoch) {
    return permutation::mix(permutation::mix(options.seed) + epoch);
}

/// Returns how many of `total` positions dealt out in turn fall to `place`.
std::size_t dealt(std::size_t total, std::size_t place, std::size_t world) {
    return total > place ? (total - place - 1) / world + 1 : 0;
}

/// The rank's place in the dealing, which began with rank 0 at position 0 when it began at `start`. A global epoch is dealt anew
/// from where it is resumed; in a sharded one every rank goes on in its own shard, so the dealing is that of the whole epoch.
struct dealing {
    std::size_t skipped;  ///< positions of this rank's own that are already taken
    std::size_t count;
};

dealing deal(sampler_options const& options, std::size_t samples, epoch_part const& part) {
    std::size_t const world = static_cast<std::size_t>(part.world);
    std::size_t const rank = static_cast<std::size_t>(part.rank);
    bool const sharded = options.spread != spread_rule::global;
    std::size_t const skipped = sharded ? dealt(part.start, rank, world) : 0;
    std::size_t const all = sharded ? samples : samples - part.start;
    std::size_t count = dealt(all, rank, world);
    if (options.tail == tail_rule::drop) count = all / world;
    if (options.tail == tail_rule::pad) count = all / world + (all % world != 0 ? 1 : 0);
    return {skipped, count - std::min(count, skipped)};
}

}  // namespace

hyperslab shards_of(std::size_t samples, rank_range ranks, int world) {
    std::size_t const first = shard_of(samples, ranks.first, world).first;
    return {first, shard_of(samples, ranks.first + ranks.count - 1, world).end() - first};
}

shuffle_window window_for(std::uint64_t samples, std::uint64_t sample_bytes, std::uint64_t stored_samples) noexcept {
    constexpr std::uint64_t shuffled_whole = std::uint64_t{4} << 30;
    constexpr std::uint64_t chunk_bytes = std::uint64_t{4} << 20;
    if (sample_bytes == 0 || samples <= shuffled_whole / sample_bytes) return {};
    std::uint64_t const step = std::max<std::uint64_t>(1, stored_samples);
    return {static_cast<std::size_t>(std::max<std::uint64_t>(1, chunk_bytes / sample_bytes / step) * step), 64};
}

sampler::sampler(std::size_t samples, sampler_options options) : samples_(samples), length_(samples), options_(options) {
    if ((options_.window.chunk_samples == 0) != (options_.window.chunks == 0))
        throw_error(errc::usage, "sampler: a window of {} chunks of {} samples; give at least 1 of both, or no window",
                    options_.window.chunks, options_.window.chunk_samples);
}

sampler::sampler(std::vector<double> weights, weighted_options draws, sampler_options options)
    : samples_(weights.size()), length_(draws.draws), options_(options) {
    if (options_.spread != spread_rule::global || options_.window || !options_.shuffle)
        throw error(errc::usage,
                    "sampler: draws by weight go over all samples in a shuffled order; give the spread \"global\", no "
                    "window and shuffle");
    weighted_ = std::make_shared<weighted_draws const>(std::move(weights), draws.draws, draws.replacement);
}

std::size_t sampler::count(epoch_part const& part) const {
    check(part, length_, options_.spread);
    return deal(options_, length_, part).count;
}

epoch_walk sampler::walk(epoch_part const& part) const {
    check(part, length_, options_.spread);
    std::uint64_t const rank = static_cast<std::uint64_t>(part.rank);
    std::uint64_t const key = epoch_key(options_, part.epoch);
    if (options_.spread == spread_rule::global)
        return {{0, length_}, key, part.start + rank, static_cast<std::uint64_t>(part.world)};
    std::size_t const skipped = deal(options_, length_, part).skipped;
    bool const node = options_.spread == spread_rule::by_node;
    rank_range const sharing = node ? part.node : rank_range{part.rank, 1};
    hyperslab shard = shards_of(length_, sharing, part.world);
    if (shard.empty()) shard = {0, length_};  // only when padding: there are more ranks than samples
    std::uint64_t const step = static_cast<std::uint64_t>(sharing.count);
    return {shard, permutation::mix(key + static_cast<std::uint64_t>(sharing.first) + 1),
            rank - static_cast<std::uint64_t>(sharing.first) + skipped * step, step};
}

void sampler::fill_order(epoch_walk const& from, std::uint64_t position, std::span<std::uint64_t> out) const {
    if (weighted_) {
        weighted_->fill(from.key, position, from.step, out);
        return;
    }
    if (options_.window)
        windowed_order(from.samples.count, from.key, options_.window, options_.shuffle).fill(position, from.step, out);
    else if (options_.shuffle)
        permutation(from.samples.count, from.key).fill(position, from.step, out);
    else
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = position + i * from.step;
    for (std::uint64_t& sample : out) sample += from.samples.first;
}

void sampler::fill(epoch_part const& part, std::size_t from, std::span<std::uint64_t> out) const {
    std::size_t const mine = count(part);
    expect(from <= mine && out.size() <= mine - from, "samples inside the rank's part");
    if (out.empty()) return;
    epoch_walk const way = walk(part);
    std::uint64_t position = way.position + from * way.step;
    std::size_t done = 0;
    while (done < out.size()) {
        if (position >= way.samples.count) position %= way.samples.count;  // padding begins the order again
        std::size_t const run = std::min<std::size_t>(out.size() - done, (way.samples.count - position - 1) / way.step + 1);
        fill_order(way, position, out.subspan(done, run));
        position += run * way.step;
        done += run;
    }
}

std::vector<std::uint64_t> sampler::indices(epoch_part const& part) const {
    std::vector<std::uint64_t> all(count(part));
    fill(part, 0, all);
    return all;
}

rank_range sampler::shorter_ranks(int world, std::uint64_t start) const {
    // Counts of by_node are those of sharded, whatever ranks a node has.
    auto const count_of = [&](int rank) { return count({.rank = rank, .world = world, .start = start, .node = {rank, 1}}); };
    std::size_t const longest = count_of(0);
    if (options_.tail != tail_rule::exact) return {world, 0};
    int first = 0;
    while (first < world && count_of(first) == longest) ++first;
    return {first, world - first};
}

namespace {

__extension__ using wide = unsigned __int128;

std::uint64_t hash(std::uint64_t key, std::uint64_t position) {
    return permutation::mix(key + (position + 1) * 0x9e3779b97f4a7c15u);
}

/// In (0, 1].
double unit(std::uint64_t bits) {
    return static_cast<double>((bits >> 11) + 1) * 0x1p-53;
}

/// ln x for x in (0, 1], by additions, products and quotients alone, which are the same on every machine; a library's logarithm
/// need not be, and ranks must agree on the order.
double logarithm(double x) {
    int exponent = 0;
    double const mantissa = std::frexp(x, &exponent);  // in [0.5, 1)
    double const z = (mantissa - 0.75) / (mantissa + 0.75);
    double const square = z * z;
    double sum = 0;
    for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;  // artanh z / z, |z| <= 1/5
    constexpr double ln_2 = 0.693147180559945309417232;
    constexpr double ln_three_quarters = -0.287682072451780927439219;
    return exponent * ln_2 + ln_three_quarters + 2 * z * sum;
}

}  // namespace

weighted_draws::weighted_draws(std::vector<double> weights, std::size_t draws, bool replacement)
    : weights_(std::move(weights)), draws_(draws), replacement_(replacement) {
    double sum = 0;
    std::size_t positive = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
        if (!(weights_[i] >= 0) || std::isinf(weights_[i]))
            throw_error(errc::usage, "sampler: the weight of sample {} is {}; give 0 or a positive number", i, weights_[i]);
        sum += weights_[i];
        positive += weights_[i] > 0 ? 1 : 0;
    }
    if (std::isinf(sum)) throw error(errc::usage, "sampler: the sum of the weights is beyond double; give smaller ones");
    if (draws_ > 0 && positive == 0)
        throw_error(errc::usage, "sampler: none of {} weights is positive; give one that is", weights_.size());
    if (!replacement_ && draws_ > positive)
        throw_error(errc::usage,
                    "sampler: {} draws without replacement from {} samples with positive weight; draw at most that many, or with "
                    "replacement",
                    draws_, positive);
    if (replacement_ && positive > 0) make_table(sum);
}

void weighted_draws::make_table(double sum) {
    std::size_t const n = weights_.size();
    keep_.resize(n);
    other_.resize(n);
    std::vector<std::uint64_t> small, large;
    std::size_t heaviest = 0;
    for (std::size_t i = 0; i < n; ++i) {
        keep_[i] = weights_[i] / sum * static_cast<double>(n);
        other_[i] = i;
        (keep_[i] < 1 ? small : large).push_back(i);
        if (weights_[i] > weights_[heaviest]) heaviest = i;
    }
    while (!small.empty() && !large.empty()) {
        std::uint64_t const less = small.back(), more = large.back();
        small.pop_back();
        other_[less] = more;
        keep_[more] -= 1 - keep_[less];
        if (keep_[more] < 1) {
            large.pop_back();
            small.push_back(more);
        }
    }
    // The rest is 1 except for rounding; a weight of 0 must not be drawn by it.
    for (std::uint64_t const i : large) keep_[i] = 1;
    for (std::uint64_t const i : small) {
        if (weights_[i] > 0)
            keep_[i] = 1;
        else
            other_[i] = heaviest;
    }
}

std::uint64_t weighted_draws::draw(std::uint64_t key, std::uint64_t position) const noexcept {
    std::uint64_t const first = hash(key, position);
    auto const place = static_cast<std::size_t>((static_cast<wide>(first) * keep_.size()) >> 64);
    return unit(permutation::mix(first + key)) <= keep_[place] ? place : other_[place];
}

std::shared_ptr<weighted_draws::order const> weighted_draws::order_of(std::uint64_t key) const {
    std::lock_guard const lock(mutex_);
    if (kept_ && kept_key_ == key) return kept_;
    std::vector<std::pair<double, std::uint64_t>> times;
    for (std::size_t i = 0; i < weights_.size(); ++i)
        if (weights_[i] > 0) times.emplace_back(-logarithm(unit(hash(key, i))) / weights_[i], i);
    auto const middle = times.begin() + static_cast<std::ptrdiff_t>(draws_);
    std::partial_sort(times.begin(), middle, times.end());
    auto made = std::make_shared<order>();
    for (auto it = times.begin(); it != middle; ++it) made->push_back(it->second);
    kept_key_ = key;
    kept_ = made;
    return kept_;
}

void weighted_draws::fill(std::uint64_t key, std::uint64_t first, std::uint64_t step, std::span<std::uint64_t> out) const {
    if (replacement_) {
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = draw(key, first + i * step);
        return;
    }
    auto const all = order_of(key);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = (*all)[first + i * step];
}

}  // namespace muster
