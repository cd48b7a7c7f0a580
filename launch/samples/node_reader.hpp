// Reads what a node does: load, processor time that a hypervisor took, and traffic of the network interface.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"
#include "launch/samples/run_samples.hpp"

namespace muster {

/// Returns the mean of the last minute in the text of /proc/loadavg; nothing for any other text. Pure.
std::optional<double> parse_load(std::string_view text);

/// Processor time of all hardware threads since the machine began, in the kernel's ticks.
struct processor_times {
    std::uint64_t all = 0;
    std::uint64_t stolen = 0;
    int cpus = 0;
    bool operator==(processor_times const&) const = default;
};

/// Reads the text of /proc/stat; returns nothing for any other text. Pure.
std::optional<processor_times> parse_processor_times(std::string_view text);

/// Holds what the counters of a node showed at one look.
struct node_counts {
    std::optional<processor_times> times;
    std::optional<std::uint64_t> received_bytes;
    std::optional<std::uint64_t> sent_bytes;
};

/// Sets what follows from counters: the steal since `first`, and rates since `before`, `passed_s` seconds ago. Pure.
void add_rates(node_sample& to, node_counts const& now, node_counts const& before, node_counts const& first, double passed_s,
               double ticks_per_s);

/// Looks at this node again and again. Single-threaded.
class node_reader {
  public:
    /// `interface`: whose traffic counts. Empty: the interface towards that address or, without one, the first that other machines may reach; finding it may
    /// ask a name server.
    node_reader(std::string interface, std::string const& towards);

    /// Returns the node's figures, without host, time, GPUs and ranks.
    node_sample read();

  private:
    using clock = std::chrono::steady_clock;
    std::string interface_;
    std::optional<node_counts> first_, before_;
    clock::time_point at_{};
};

}  // namespace muster
