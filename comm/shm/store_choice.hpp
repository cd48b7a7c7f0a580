// The choice between stores into the writer's caches and past them, for data that other ranks read.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace muster::shm {

/// Returns ticks of unknown length, from a clock that takes some 10 ns to read.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

/// If two processors share a cache, ordinary stores are faster, by a tenth to a quarter; if they do not, a line in the other's cache takes so long that
/// streaming stores are faster, by 2 to 2.5 times (measured: 4 KiB to 1 MiB, 2 ranks). A virtual machine does not show which is the case, and it changes
/// from second to second. So rank 0 decides for all, by the time that its own work on reductions takes, and now and then one tries the other way. It
/// decides for each power of two of their sizes: small and large ones take different times per byte.
class store_choice {
  public:
    using choices = std::uint32_t;  ///< a bit for each power of two: streams
    static constexpr choices all_stream = ~choices{0};

    static bool streams(choices chosen, std::size_t bytes) noexcept { return (chosen >> size_class(bytes) & 1) != 0; }

    /// Returns whether the next reduction of that size streams under rank 0's choice. The same on all ranks, which have counted the same
    /// reductions.
    bool next_streams(choices chosen, std::size_t bytes) const noexcept {
        std::uint64_t const number = sizes_[size_class(bytes)].reductions + 1;
        bool const tries = number < first_trials ? number % 4 == 0 : number % between_trials == 0;
        return streams(chosen, bytes) != tries;
    }

    /// Counts a reduction of that size, which begins.
    void count(std::size_t bytes) noexcept { ++sizes_[size_class(bytes)].reductions; }

    /// Notes how long it took on rank 0. Returns the choice from now on.
    choices note(bool streamed, std::size_t bytes, double took) noexcept {
        one_size& here = sizes_[size_class(bytes)];
        double const cost = took / static_cast<double>(bytes);
        double& known = streamed ? here.streamed : here.cached;
        known = here.reductions < first_trials ? std::min(cost, known) : std::clamp(cost, known / falls, known * rises);
        if (std::max(here.streamed, here.cached) < unknown) {
            choices const bit = choices{1} << size_class(bytes);
            chosen_ = here.cached > pays * here.streamed ? chosen_ | bit : chosen_ & ~bit;
        }
        return chosen_;
    }

  private:
    static constexpr std::uint64_t first_trials = 32, between_trials = 61;  // a prime: not always the same tensor of a step
    static constexpr double unknown = std::numeric_limits<double>::max(), pays = 1.3;
    /// The estimate follows the lower quartile: an interruption counts little, and so does a rank that finds in its cache what another has read before. At
    /// first the shortest time counts: memory is touched for the first time.
    static constexpr double falls = 1.3, rises = 1.1;

    struct one_size {
        std::uint64_t reductions = 0;
        double streamed = unknown, cached = unknown;
    };
    static constexpr std::size_t size_classes = 32;

    static std::size_t size_class(std::size_t bytes) noexcept {
        return std::min(static_cast<std::size_t>(std::bit_width(bytes)), size_classes - 1);
    }

    std::array<one_size, size_classes> sizes_;
    choices chosen_ = all_stream;
};

}  // namespace muster::shm
