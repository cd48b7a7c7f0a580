// The choice between stores into the writer's caches and past them, for what other ranks are to read.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace muster::shm {

/// Of a clock that is read in some 10 ns; of unknown length.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

/// Where two processors share a cache, ordinary stores are the faster ones, by a tenth to a quarter; where they do not, a line that the other's cache
/// holds takes so long that streaming stores are, by 2 to 2.5 times (measured: 4 KiB to 1 MiB, 2 ranks). No virtual machine tells which, and there it
/// changes from second to second. So rank 0 decides for all, by the time that its own work on collectives takes, and now and then one goes the other way.
class store_choice {
  public:
    /// Whether the collective of that number streams, where rank 0 has chosen so. Pure, the same on all ranks.
    static bool streams(bool chosen, std::uint64_t sequence) noexcept {
        bool const tries = sequence < first_trials ? sequence % 4 == 0 : sequence % between_trials == 0;
        return chosen != tries;
    }

    /// A collective took so long a byte. Returns what is chosen from now on.
    bool note(bool streamed, double cost) noexcept {
        double& known = streamed ? streamed_ : cached_;
        known = notes_ < first_trials ? std::min(cost, known) : std::clamp(cost, known / falls, known * rises);
        notes_ = std::min(notes_ + 1, first_trials);
        if (std::max(streamed_, cached_) < unknown) chosen_ = cached_ > pays * streamed_;
        return chosen_;
    }

  private:
    static constexpr std::uint64_t first_trials = 32, between_trials = 61;  // a prime: not always the same tensor of a step
    static constexpr double unknown = std::numeric_limits<double>::max(), pays = 1.3;
    /// What is known follows the lower quartile: an interruption counts little, and so does a rank that finds in its cache what one before it has read.
    static constexpr double falls = 1.3, rises = 1.1;

    std::uint64_t notes_ = 0;  // at the start the shortest time counts: memory is touched for the first time
    double streamed_ = unknown, cached_ = unknown;
    bool chosen_ = true;
};

}  // namespace muster::shm
