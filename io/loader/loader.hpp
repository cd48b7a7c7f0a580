// A loader: delivers batches of shuffled samples from memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "io/dataset/dataset.hpp"
#include "io/loader/sampler.hpp"

namespace muster {

/// Where the samples lie that a loader draws from.
enum class memory_mode {
    automatic,  ///< shard for a sharded sampler; else whole if all ranks of the node together fill at most half of its memory so,
                ///< else mapped
    whole,      ///< every sample, in this rank's own memory
    mapped,     ///< every sample, in the node's page cache, shared by its ranks; the file must be contiguous and is kept mapped
    shard,      ///< this rank's shard_of() only, in its own memory; needs spread_rule::sharded
};
std::string_view to_string(memory_mode mode) noexcept;

struct loader_options {
    std::size_t batch = 64;  ///< samples
    int rank = 0;
    int world = 1;
    int local_size = 1;  ///< ranks on this node: for `automatic`
    memory_mode memory = memory_mode::automatic;
    /// Batches that a thread gathers ahead; 0: none, the consumer gathers each batch itself when it comes to it; nothing: 3 if
    /// this process may run on more than one core and a batch is 1 MiB or more, else 0, since waking a thread costs more than
    /// gathering a small batch.
    std::optional<std::size_t> prefetch;
    bool operator==(loader_options const&) const = default;
};

/// Views into the loader's buffers: good until the next batch is asked for.
struct batch {
    std::span<std::uint8_t const> images;    ///< count x C x H x W elements of the dataset's type
    std::span<std::uint8_t const> labels;    ///< count labels of the dataset's label_bytes() each
    std::span<std::uint64_t const> samples;  ///< count: which samples of the dataset these are
    std::size_t count = 0;                   ///< may be 0 at the end of an epoch where other ranks still have samples
    std::size_t first_sample = 0;            ///< how many samples this rank has had of this epoch before
    std::size_t global_count = 0;            ///< samples in this step over all ranks: what an average over the step divides by
    std::uint64_t resume_at = 0;             ///< the `start` with which epoch() goes on after this step
};

/// Reads its samples once, at construction, in large pieces, and then delivers them from memory: the gathering into a batch is
/// the only copy. Every rank's epoch has the same number of batches, so that ranks may meet in each step; over all ranks an epoch
/// has what the sampler says. One consumer thread; the dataset may be closed after construction. Errors: those of dataset::read;
/// errc::usage on options that contradict; errc::unavailable if `mapped` is not possible.
class loader {
  public:
    /// Collective if the dataset was opened so.
    loader(dataset const& from, sampler const& order, loader_options options = {});
    loader(loader&&) noexcept;
    loader& operator=(loader&&) noexcept;
    ~loader();

    class iterator {
      public:
        using value_type = batch;
        using difference_type = std::ptrdiff_t;
        batch const& operator*() const noexcept;
        batch const* operator->() const noexcept { return &**this; }
        iterator& operator++();
        void operator++(int) { ++*this; }
        bool operator==(std::default_sentinel_t) const noexcept;

      private:
        friend class loader;
        explicit iterator(loader* owner) : owner_(owner) {}
        loader* owner_;
    };

    /// To be gone through once.
    class epoch_range {
      public:
        iterator begin();  ///< waits for the first batch
        std::default_sentinel_t end() const noexcept { return {}; }
        std::size_t size() const noexcept { return batches_; }  ///< batches

      private:
        friend class loader;
        epoch_range(loader* owner, std::size_t batches) : owner_(owner), batches_(batches) {}
        loader* owner_;
        std::size_t batches_;
    };

    /// Starts an epoch, and ends the one before if that is not at its end; `start` as in epoch_part. The loader must stay where
    /// it is while it runs.
    epoch_range epoch(std::uint64_t number, std::uint64_t start = 0);

    loader_options const& options() const noexcept;  ///< as chosen: neither memory nor prefetch is open any more
    std::size_t held_bytes() const noexcept;         ///< of samples, in memory of this process' own

  private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace muster
