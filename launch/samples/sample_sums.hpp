// Brings together the samples of all nodes of a run, and adds up figures of the whole run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/samples/run_samples.hpp"

namespace muster {

/// A rank of the present generation.
struct present_rank {
    int at_start = 0;  ///< its number at the start of the run, by which looks name it
    int rank = 0;      ///< its present number
};

/// Plain values: no I/O. Single-threaded.
class sample_sums {
  public:
    /// Takes one look at a node at the time `at_s`, or at a part of it: figures of the node, of GPUs or of ranks that are not in it stay as they were.
    void note(std::string const& host, node_sample const& look, double at_s);

    bool empty() const noexcept { return nodes_.empty(); }

    /// Returns the newest samples of these ranks and of their nodes' GPUs, by host and by present number. Nodes without these ranks are left out.
    std::vector<node_sample> nodes(std::vector<present_rank> const& ranks) const;

  private:
    struct average {
        double sum = 0, count = 0;
        void add(double value) { sum += value, ++count; }
        std::optional<double> value() const { return count > 0 ? std::optional(sum / count) : std::nullopt; }
        std::optional<int> rounded() const {
            return count > 0 ? std::optional(static_cast<int>(sum / count + 0.5)) : std::nullopt;
        }
    };
    struct gpu_sums {
        gpu_sample last;
        std::optional<std::int64_t> first_ecc_errors, first_link_replays;  ///< at the first look
        average busy_percent;
        average clock_mhz, slowed;  ///< of the looks at which it was busy

        void note(gpu_sample const& look);
    };
    struct node_sums {
        node_sample last;  ///< without GPUs and ranks
        double at_s = 0;
        std::vector<gpu_sums> gpus;
    };
    struct rank_look {
        std::string host;
        rank_sample last;
    };
    std::map<std::string, node_sums> nodes_;
    std::map<int, rank_look> ranks_;  ///< by number at the start
};

}  // namespace muster
