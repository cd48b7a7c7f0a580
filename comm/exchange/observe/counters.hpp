// Counters of what an exchange has done; prints them as JSON or for Prometheus.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "comm/exchange/request/exchange_request.hpp"

namespace muster {

/// A copy of this rank's counters at one moment. They count from the start of the exchange.
struct counter_values {
    std::array<std::uint64_t, exchange_kinds> operations{};  ///< finished, by kind
    std::array<std::uint64_t, exchange_kinds> bytes{};       ///< of this rank's inputs, by kind
    std::uint64_t tensors = 0;                               ///< reduced by allreduce
    std::uint64_t fused_tensors = 0;                         ///< … of these, together with others
    std::uint64_t batches = 0;                               ///< collectives started for data
    std::uint64_t zero_copy_batches = 0;                     ///< allreduces of tensors where they lie
    std::uint64_t rounds = 0;                                ///< of negotiation
    std::uint64_t full_rounds = 0;                           ///< … of these, with announcements beyond cached ones
    std::uint64_t agreeing_rounds = 0;                       ///< rounds in which something was agreed on
    std::uint64_t agreeing_ns = 0;                           ///< the time of these, including waits for other ranks
    std::uint64_t cache_hits = 0, cache_misses = 0;          ///< requests that were, or were not, in the cache
    std::uint64_t errors = 0;                                ///< requests that ended with an error
    std::uint64_t stalls = 0;                                ///< warnings of the stall inspector
    std::uint64_t wait_ns = 0;                               ///< time that callers were blocked in wait()
    std::uint64_t negotiation_ns = 0;                        ///< between submission and agreement, summed over requests
    std::uint64_t timeline_dropped = 0;                      ///< events that did not fit into the timeline
    bool operator==(counter_values const&) const = default;
};

/// Returns fused tensors per tensor of allreduces; 0 before the first.
double fused_ratio(counter_values const& values) noexcept;

/// Returns {"rank": 0, "operations": {"allreduce": 12, …}, "bytes": {…}, "fused_ratio": 0.9, …}, one line.
std::string to_json(counter_values const& values, int rank);

/// Returns the text format of Prometheus, version 0.0.4: metrics muster_comm_*_total with the label rank (and kind).
std::string to_prometheus(counter_values const& values, int rank);

/// Counters that any thread may add to and read. They are relaxed: a copy may miss what happens at the same time.
class counters {
  public:
    using number = std::atomic<std::uint64_t>;

    std::array<number, exchange_kinds> operations{}, bytes{};
    number tensors{0}, fused_tensors{0}, batches{0}, zero_copy_batches{0}, rounds{0}, full_rounds{0}, agreeing_rounds{0},
        agreeing_ns{0}, cache_hits{0}, cache_misses{0}, errors{0}, stalls{0}, wait_ns{0}, negotiation_ns{0}, timeline_dropped{0};

    static void add(number& to, std::uint64_t amount = 1) noexcept { to.fetch_add(amount, std::memory_order_relaxed); }
    counter_values values() const noexcept;
};

}  // namespace muster
