// A sampler: gives a rank its samples of an epoch and their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "io/hdf5/hyperslab.hpp"
#include "io/loader/windowed_order.hpp"

namespace muster {

/// Deterministic by (key, position). With replacement a draw costs constant time (alias method of Walker and Vose, two hashes of
/// the position); draw p is independent of all others, and sample i comes in a fraction w_i / sum(w) of the draws on average.
/// Without replacement the samples are ordered by -ln(u_i) / w_i with u_i uniform by (key, i) (Efraimidis and Spirakis 2006):
/// the first draw is i with probability w_i / sum(w), each further one so among those that are left; the order of an epoch is
/// worked out when it is first asked for, in n log n, and kept until another is. A weight of 0 is never drawn. Thread safe.
class weighted_draws {
  public:
    /// Throws errc::usage on a weight that is negative or no number, on weights of which none is positive, and without
    /// replacement if fewer than `draws` are positive.
    weighted_draws(std::vector<double> weights, std::size_t draws, bool replacement);

    std::size_t samples() const noexcept { return weights_.size(); }
    std::size_t draws() const noexcept { return draws_; }

    /// The samples of draws first, first + step, …, all less than draws(), into `out`.
    void fill(std::uint64_t key, std::uint64_t first, std::uint64_t step, std::span<std::uint64_t> out) const;

  private:
    using order = std::vector<std::uint64_t>;
    void make_table(double sum);
    std::uint64_t draw(std::uint64_t key, std::uint64_t position) const noexcept;
    std::shared_ptr<order const> order_of(std::uint64_t key) const;

    std::vector<double> weights_;
    std::size_t draws_;
    bool replacement_;
    std::vector<double> keep_;          ///< with replacement: the chance that a place stands for its own sample
    std::vector<std::uint64_t> other_;  ///< and the sample that it stands for else
    mutable std::mutex mutex_;
    mutable std::uint64_t kept_key_ = 0;
    mutable std::shared_ptr<order const> kept_;
};

/// Says what happens when the samples do not divide evenly among the ranks.
enum class tail_rule {
    exact,  ///< every sample exactly once; some ranks have one fewer
    pad,    ///< every rank as many as the longest: the first samples of the order come a second time
    drop,   ///< every rank as many as the shortest: the last samples of the order are left out in this epoch
};

/// Says among which samples a rank draws.
enum class spread_rule {
    global,  ///< one order of all samples for (seed, epoch), whatever the number of ranks; rank r takes positions r, r+world, …
    sharded,  ///< a rank draws from its own shard_of() only, shuffled anew each epoch: for shards that do not fit a node's memory
              ///< together. Exact cover still, but the order depends on the number of ranks and samples never change their rank.
    by_node,  ///< the ranks of a node draw from the shards of all of them together, one order a node, dealt out in turn: samples
              ///< never leave their node. Every rank has as many as with `sharded`. Needs epoch_part::node.
};

struct sampler_options {
    std::uint64_t seed = 42;
    bool shuffle = true;
    tail_rule tail = tail_rule::exact;
    spread_rule spread = spread_rule::global;
    shuffle_window window{};  ///< none: any sample may follow any other. For sets larger than memory: see window_for()
    bool operator==(sampler_options const&) const = default;
};

/// The window for a set of so many samples of so many bytes: none up to 4 GiB, beyond it 64 chunks of about 4 MiB, which are whole
/// chunks of the file where it is stored in chunks of `stored_samples` (0: it is not). A function of the dataset alone, so that all
/// ranks have the same order, whatever memory their nodes have.
shuffle_window window_for(std::uint64_t samples, std::uint64_t sample_bytes, std::uint64_t stored_samples = 0) noexcept;

/// The ranks first … first+count-1.
struct rank_range {
    int first = 0;
    int count = 0;
    bool operator==(rank_range const&) const = default;
};

/// The samples of the shards of these ranks together. Needs at least one.
hyperslab shards_of(std::size_t samples, rank_range ranks, int world);

/// A rank's part of an epoch. `start` is how many samples all ranks together have already taken of this epoch (to resume in
/// mid-epoch, with `spread_rule::global` also with another number of ranks; with the others with the same number only).
struct epoch_part {
    std::uint64_t epoch = 0;
    int rank = 0;
    int world = 1;
    std::uint64_t start = 0;
    rank_range node{};  ///< for `by_node`: the ranks of this rank's node, which follow each other
    bool operator==(epoch_part const&) const = default;
};

/// Says how a rank goes through an order: its sample i is `samples.first` + order(position + i * step), where the order is that of
/// samples.count samples by `key`; positions beyond it begin again (padding).
struct epoch_walk {
    hyperslab samples;
    std::uint64_t key = 0;
    std::uint64_t position = 0;
    std::uint64_t step = 1;
    bool operator==(epoch_walk const&) const = default;
};

/// Draws by weight in place of every sample once. `draws` an epoch over all ranks: exactly so many, of which rank r takes the
/// draws r, r+world, …
struct weighted_options {
    std::size_t draws = 0;
    bool replacement = true;  ///< without: no sample twice in an epoch
};

/// Pure and thread safe: equal arguments give equal results on every machine (io/loader/windowed_order.hpp defines the shuffle,
/// io/loader/windowed_order.hpp that with a window, weighted_draws draws by weight; the key is mix(mix(seed) +
/// epoch), for `sharded` mix(mix(mix(seed) + epoch) + rank + 1), for `by_node` that of the node's first rank). Throws errc::usage
/// on a rank outside its world or its node, a start beyond the epoch, or one that a sharded epoch of this world cannot have
/// reached (no multiple of `world`).
class sampler {
  public:
    /// Every sample once an epoch. errc::usage on a window of chunks without samples or without chunks.
    explicit sampler(std::size_t samples, sampler_options options = {});

    /// Draws by weight, one weight a sample. errc::usage also where the options ask for another spread than `global`, for a
    /// window or for no shuffle.
    sampler(std::vector<double> weights, weighted_options draws, sampler_options options = {});

    std::size_t size() const noexcept { return samples_; }   ///< of the dataset
    std::size_t length() const noexcept { return length_; }  ///< samples of an epoch over all ranks, before padding or dropping
    sampler_options const& options() const noexcept { return options_; }

    /// Returns how many samples this rank takes.
    std::size_t count(epoch_part const& part) const;

    /// Samples number `from` … `from + out.size() - 1` of this rank's part, into `out`. Needs from + out.size() <= count(part).
    /// Costs 14 to 18 ns a sample on the machine it was measured on, and no memory.
    void fill(epoch_part const& part, std::size_t from, std::span<std::uint64_t> out) const;

    /// Returns the walk of this rank. It is not for draws by weight.
    epoch_walk walk(epoch_part const& part) const;

    /// The whole part.
    std::vector<std::uint64_t> indices(epoch_part const& part) const;
    std::vector<std::uint64_t> indices(std::uint64_t epoch, int rank, int world) const {
        return indices({.epoch = epoch, .rank = rank, .world = world, .start = 0});
    }

    /// The ranks that take one sample fewer than the others in an epoch begun at `start`; none with `pad` and `drop`.
    rank_range shorter_ranks(int world, std::uint64_t start = 0) const;

  private:
    void fill_order(epoch_walk const& from, std::uint64_t position, std::span<std::uint64_t> out) const;

    std::size_t samples_;
    std::size_t length_;
    sampler_options options_;
    std::shared_ptr<weighted_draws const> weighted_;
};

}  // namespace muster
