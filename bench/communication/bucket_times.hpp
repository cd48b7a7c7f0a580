// The times of a step's gradient buckets by measured allreduces: what they need, and what the backward pass cannot hide.
#pragma once

#include <cstddef>

#include "bench/in_job/link_fit.hpp"
#include "bench/tools/gradient_sets.hpp"

namespace muster {

/// Of one step, in seconds.
struct bucket_times {
    std::size_t buckets = 0;
    double needed_s = 0;   ///< of all its allreduces, one after the other
    double latency_s = 0;  ///< of these, what each costs whatever its size
    double exposed_s = 0;  ///< what is left of them when the backward pass is over
};

/// Buckets are cut as by gradient_reducer with `bucket_bytes`, also for the first; a bucket is ready when the backward pass has done its
/// share of the work (of the elements where the work is not known), and starts when the one before it is over. That allreduces go on
/// beside the backward pass is the best case. Pure.
bucket_times times_of_buckets(gradient_set const& gradients, std::size_t bucket_bytes, double backward_s,
                              link_fit const& allreduce);

}  // namespace muster
