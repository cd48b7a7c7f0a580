// The world of a node's ranks: their shared memory, processes and counters, as one rank's collectives use them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "comm/backend/memory/shared_memory.hpp"
#include "comm/backend/processes/process_watch.hpp"
#include "comm/shm/memory/segment.hpp"
#include "comm/shm/memory/shared_buffers.hpp"
#include "comm/shm/store_choice.hpp"
#include "pmix/identity.hpp"

namespace muster::shm {

inline constexpr std::size_t line_bytes = 64;

/// Tells the processor that this loop waits.
inline void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/// The owner of buffers, and what proves that a file is one of them.
struct buffers_owner {
    pid_t pid = 0;
    process_token token;       ///< as it was announced; the buffers' notes hold it
    std::uint64_t device = 0;  ///< of the file system on which this kernel's memory files lie
};

/// The buffers of one other process that this one has seen. They stay mapped between collectives.
class mapped_buffers {
  public:
    static constexpr std::size_t most = 1024;

    /// Call it when nothing that was found is in use. If more came since the last time, releases those that their owner has freed
    /// and, beyond `most`, those that were not used for longest.
    void tidy() noexcept;

    /// Returns the address here of the `bytes` that process `owner` has at `place`; null with errno in `code` if they cannot be
    /// mapped: EACCES or EPERM if the kernel does not allow it, ESRCH if the process or its buffer is gone, EBADF if something
    /// else is there: in another PID namespace, or through another one's /proc, the number means another process.
    std::byte* find(buffers_owner const& owner, shared_place const& place, std::size_t bytes, int& code);

    std::size_t size() const noexcept { return mapped_.size(); }

  private:
    struct entry {
        std::uint64_t buffer;
        std::uint64_t used;
        std::size_t bytes;
        shared_memory memory;
    };
    std::vector<entry> mapped_;
    std::size_t last_ = 0;  // the place of the last hit: the next one is often there or follows
    std::uint64_t uses_ = 0;
    bool grown_ = false;
};

struct aligned_delete {
    void operator()(std::byte* memory) const noexcept { ::operator delete[](memory, std::align_val_t{4096}); }
};
using aligned_bytes = std::unique_ptr<std::byte[], aligned_delete>;
inline aligned_bytes make_aligned(std::size_t bytes) {
    return aligned_bytes(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{4096})));
}

/// Plain state of one rank; one call at a time uses it.
struct world {
    int rank = 0;
    int size = 1;
    geometry sizes;
    std::shared_ptr<shared_memory> memory;
    std::vector<region> regions;          ///< by rank
    std::vector<process_name> processes;  ///< by rank
    std::vector<std::string> hosts;       ///< by rank
    bool crowded = false;                 ///< more ranks than processors
    std::string distance;                 ///< distance to another rank's caches, as measured, for people; may be empty
    store_choice stores;                  ///< counts on all ranks, chooses on rank 0
    std::vector<int> beside;              ///< other ranks that may run on one of this rank's processors
    bool direct = false;                  ///< the kernel lets every rank read and write every other's memory
    bool mappable = false;                ///< … map every other's shared buffers

    std::uint64_t sequence = 0;                ///< the collective announced last; they start at 1
    std::uint64_t round = 0;                   ///< rounds of all finished collectives
    std::vector<std::uint64_t> pair_sequence;  ///< the exchange announced last to each rank
    std::vector<std::uint64_t> pair_filled;    ///< rounds sent to each rank
    std::vector<std::uint64_t> pair_worked;    ///< rounds received from each rank

    aligned_bytes scratch;                ///< scratch_bytes long
    std::vector<void const*> sources;     ///< room for one address of each rank
    std::vector<void*> targets;           ///< the same
    std::vector<mapped_buffers> mapped;   ///< by rank
    std::vector<buffers_owner> owners;    ///< by rank: owners of what is mapped
    std::vector<std::byte*> near_inputs;  ///< by rank: the tensors of the collective under way, if they are mapped here
    std::vector<std::byte*> near_outputs;

    region const& own() const noexcept { return regions[static_cast<std::size_t>(rank)]; }
    region const& of(int other) const noexcept { return regions[static_cast<std::size_t>(other)]; }
};

/// The size of other ranks' input that is copied near at once: it fits a second-level cache together with what it is combined
/// with and into.
inline constexpr std::size_t scratch_bytes = std::size_t{512} << 10;

/// Returns a world over `memory` of sizes.total_bytes(), with nobody in it yet.
world make_world(std::shared_ptr<shared_memory> memory, geometry const& sizes, int rank);

/// Gives every rank its region of the memory; does not touch the bytes of others.
void divide(world& all);

/// Returns "rank 3 on n1 (process 4711)".
std::string name_of(world const& all, int rank);

/// The position that a rank has reached. The rank that holds the others up has the least position; the rest only wait for it.
struct position {
    std::uint64_t sequence = 0;
    std::uint64_t steps = 0;
    auto operator<=>(position const&) const = default;
};
position position_of(world const& all, int rank) noexcept;

/// Returns what is wrong with the ranks of `missing`: all that are dead, gave up, or are stopped; otherwise those that are behind
/// all others. In ascending order. `sequence` is the collective that waits.
std::vector<late_rank> blame(world const& all, std::vector<int> const& missing, std::uint64_t sequence);

// The making of a world over shared memory consists of the rendezvous and of probes of what the kernel allows between its ranks.

/// Collective over the ranks that give the same `name`, within options.deadline. Throws as shm_rendezvous does.
world join_world(std::string const& name, identity const& who, comm_options const& options);

}  // namespace muster::shm
