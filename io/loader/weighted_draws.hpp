// Draws of samples by weight, with replacement or without: finds the sample of any draw of an epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

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

}  // namespace muster
