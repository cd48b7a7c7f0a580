// A loader: delivers batches of shuffled samples from memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "io/dataset/dataset.hpp"
#include "io/loader/image_transform.hpp"
#include "io/loader/sampler.hpp"

namespace muster {

class communicator;

/// Says where the samples lie that a loader draws from.
enum class memory_mode {
    automatic,  ///< what fits: see loader
    whole,      ///< every sample, in this rank's own memory
    mapped,     ///< every sample, in the node's page cache, shared by its ranks; the file must be contiguous and is kept mapped
    shard,      ///< this rank's shard_of() only, in its own memory; needs spread_rule::sharded
    shared,     ///< what the ranks of the node draw from, once a node, in memory that they share; needs a communicator
    windowed,   ///< two windows of the sampler's, read ahead by threads while the epoch runs: for sets larger than memory. The
                ///< sampler must have a window, the file must be contiguous
};
std::string_view to_string(memory_mode mode) noexcept;

struct loader_options {
    std::size_t batch = 64;  ///< samples
    int rank = 0;
    int world = 1;
    int local_size = 1;  ///< ranks on this node: for `automatic` and spread_rule::by_node
    int local_rank = 0;  ///< this rank's place among them: for spread_rule::by_node, where they must follow each other
    memory_mode memory = memory_mode::automatic;
    /// Batches that threads gather ahead; 0: none, the consumer gathers each batch itself when it comes to it; nothing: 3 if
    /// this process may run on more than one core and a batch is 1 MiB or more, or is transformed, else 0, since waking a thread
    /// costs more than gathering a small batch.
    std::optional<std::size_t> prefetch;
    std::size_t workers = 1;   ///< threads that gather ahead, each a batch; one with `windowed`
    std::size_t readers = 4;   ///< threads that read, with `windowed`
    bool large_pages = false;  ///< with `shared`: on pages of 2 MiB that the node has reserved (vm.nr_hugepages)
    /// Batches lie in pinned memory, which a GPU copies from while the program goes on (cudaMemcpyAsync); nothing: where the thread
    /// that makes the loader has a context on a GPU already. Never tried on a GPU.
    std::optional<bool> pinned;
    std::optional<transform_options> transform;  ///< batches of f32 instead of bytes
    std::string wait_page;                       ///< comm_options::wait_page: where waits for batches are counted
    bool operator==(loader_options const&) const = default;
};

/// Says how the time of an epoch was spent, as MLPerf Storage counts: accelerator utilisation is the time that training computed by
/// all the time, from the end of the first step on (the first is left out).
struct loader_report {
    std::size_t steps = 0;      ///< batches delivered, with the first
    std::uint64_t samples = 0;  ///< in them
    std::uint64_t bytes = 0;    ///< image bytes that these samples have in the dataset
    double waited_s = 0;        ///< in which training waited for a batch, without the first step
    double total_s = 0;         ///< from the end of the first step to the last call for a batch
    double utilisation() const noexcept { return total_s > 0 ? (total_s - waited_s) / total_s : 1; }
    bool operator==(loader_report const&) const = default;
};

/// Views into the loader's buffers: good until the next batch is asked for.
struct batch {
    std::span<std::uint8_t const> images;    ///< count x C x H x W elements of the dataset's type; empty with a transform
    std::span<float const> values;           ///< with a transform: count x its shape
    std::span<std::uint8_t const> labels;    ///< count labels of the dataset's label_bytes() each
    std::span<std::uint64_t const> samples;  ///< count: which samples of the dataset these are
    std::size_t count = 0;                   ///< may be 0 at the end of an epoch where other ranks still have samples
    std::size_t first_sample = 0;            ///< how many samples this rank has had of this epoch before
    std::size_t global_count = 0;            ///< samples in this step over all ranks: what an average over the step divides by
    std::uint64_t resume_at = 0;             ///< the `start` with which epoch() goes on after this step
};

/// Reads its samples once, at construction, in large pieces, and then delivers them from memory: the gathering into a batch is
/// the only copy (but with `windowed`). Every rank's epoch has the same number of batches, so that ranks may meet in each step;
/// over all ranks an epoch has what the sampler says. What is delivered depends on sampler, transform and world alone, not on the
/// memory mode.
///
/// `automatic` takes what fits half of the memory that this process may still take (io/loader/memory_choice.hpp; the limits of
/// control groups count), by all ranks of the node together: `shared` with a communicator of several ranks a node, else `shard`
/// for a sharded sampler and `whole` for others; what does not fit is `windowed` if the sampler has a window, else `mapped`. The
/// choice is logged (level debug) and told by why().
///
/// One consumer thread; the dataset may be closed after construction. Errors: those of dataset::read; errc::usage on options that
/// contradict; errc::unavailable where the mode is not possible; with `windowed` also during an epoch, those of reading.
class loader {
  public:
    /// Collective if the dataset was opened so.
    loader(dataset const& from, sampler const& order, loader_options options = {});
    /// Collective over `ranks`, which are needed only here: for `shared`. Rank, world, local rank and local size are taken from
    /// it. All ranks choose the same mode.
    loader(dataset const& from, sampler const& order, communicator& ranks, loader_options options = {});
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

    /// A single-pass range.
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

    loader_options const& options() const noexcept;  ///< with memory, prefetch and pinned resolved
    std::size_t held_bytes() const noexcept;  ///< of samples, in memory of this process' own or, with `shared`, of its node's
    image_shape shape() const noexcept;       ///< of an image of a batch
    std::string const& why() const noexcept;  ///< the memory mode and what decided it, in one line, for people
    loader_report report() const noexcept;    ///< of the epoch begun last, so far

  private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace muster
