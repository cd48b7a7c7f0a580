// The reducer of a model's gradients. Averages them over the ranks while the backward pass still computes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/gradients/bucket_plan.hpp"

namespace muster {

/// The defaults come from measurements of 2 ranks on one node over the mpi backend. Beyond 1 MiB an allreduce gains nothing from
/// more bytes, it only starts later. A second bucket costs 4 us where nothing can be hidden behind the backward pass (87 KB of
/// gradients: 30 us instead of 26 us a step).
struct gradient_reducer_options {
    /// A bucket is closed once it holds at least so many bytes. Small buckets start early, large ones cost less each.
    std::size_t bucket_bytes = std::size_t{1} << 20;
    /// The same for the first bucket: a small one gets the exchange going while most of the backward pass is still to come.
    std::size_t first_bucket_bytes = std::size_t{1} << 15;
    bool operator==(gradient_reducer_options const&) const = default;
};

/// Cuts gradients, in the order in which the backward pass completes them, into buckets; each bucket is averaged by one
/// allreduce, started as soon as its last gradient is ready (and every bucket before it has been started: the order is the same
/// on all ranks).
///
/// A bucket whose gradients lie gap-free in memory, in any order, and on all ranks in the same, is reduced where it lies; others
/// are copied to one buffer and back. The fastest layout is therefore one allocation for all gradients.
///
/// Per step: ready(i) once for each gradient, then finish(). The communicator must stay in place, and must outlive this; both are
/// used by one thread at a time. Other collectives may go on meanwhile, in the same order on all ranks.
class gradient_reducer {
  public:
    /// Collective. The memory of the gradients stays the caller's and must stay where it is. Throws comm_error on all ranks,
    /// naming the ranks that differ from rank 0 and the first gradient that does, if number, names, sizes or options are not the
    /// same on all.
    gradient_reducer(communicator& ranks, std::vector<gradient_view> in_order_of_readiness,
                     gradient_reducer_options const& options = {});

    gradient_reducer(gradient_reducer const&) = delete;
    gradient_reducer& operator=(gradient_reducer const&) = delete;
    ~gradient_reducer();  ///< waits for buckets under way

    /// Gradient `index` is complete and is not touched until finish() returns. Never blocks. Better in the order given, but any
    /// order works. Moves what is under way forward. Throws comm_error (errc::usage) on an index out of range or given twice in a
    /// step.
    void ready(std::size_t index);

    /// Waits for all buckets; then every gradient holds the average over the ranks, and the next step begins. Throws comm_error
    /// (errc::usage), naming them, if gradients are not ready, and what operation::wait throws.
    void finish();

    std::size_t bucket_count() const noexcept { return buckets_.size(); }
    std::size_t started_buckets() const noexcept { return started_; }  ///< in this step
    /// Buckets of this step that are reduced already, from the first on. Moves everything forward, never blocks.
    std::size_t finished_buckets();
    /// Whether that bucket is reduced where it lies.
    bool in_place(std::size_t index) const { return buckets_.at(index).memory != nullptr; }

  private:
    struct bucket {
        bucket_range range;
        std::size_t pending = 0;          // gradients not ready yet
        float* memory = nullptr;          // where the gradients lie, if they lie gap-free
        std::size_t count = 0;            // elements
        std::unique_ptr<float[]> buffer;  // else: where they are gathered
        operation reduction;
        std::string name;
    };

    void start_full_buckets();
    void gather(bucket& from);
    void scatter(bucket& to);

    communicator* ranks_;
    std::vector<gradient_view> gradients_;
    std::vector<std::size_t> bucket_of_;
    std::vector<bool> is_ready_;
    std::vector<bucket> buckets_;
    std::size_t started_ = 0;
    std::size_t finished_ = 0;
};

}  // namespace muster
