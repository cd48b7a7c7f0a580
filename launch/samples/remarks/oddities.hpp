// Finds what is odd in the samples of a run: ranks, GPUs and nodes that hold the run up or are about to fail.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/samples/run_samples.hpp"

namespace muster {

enum class oddity_kind {
    awaited,          ///< the other ranks wait for this one
    stopped,          ///< by a signal or a debugger
    blocked,          ///< in a system call that cannot be interrupted
    throttled,        ///< by the processor quota of its cgroup
    shares_cores,     ///< other processes use its cores
    swapping,         ///< its pages come from a disk
    memory_limit,     ///< its cgroup's memory is almost full
    memory_pressure,  ///< tasks of its cgroup wait for memory
    io_pressure,      ///< tasks of its cgroup wait for disks or file systems
    gpu_slowed,       ///< its GPU's clock is reduced
    gpu_idle,         ///< its GPU has far less to do than the others'
    gpu_errors,       ///< its GPU's memory has uncorrected errors
    silent,           ///< it writes no output while the others do
    data_wait,        ///< it waits for its data loader more than the others
    steal,            ///< the hypervisor gives the node's processors to others
};
/// Returns the kind in words, "GPU slowed".
std::string_view to_string(oddity_kind kind) noexcept;

struct oddity {
    int rank = -1;  ///< -1: the whole node
    std::string host;
    std::string
        reason;  ///< for people: "keeps the others waiting 34 % of the time: its GPU runs at 1005 of 1980 MHz: heat (hardware)"
    oddity_kind kind = oddity_kind::awaited;
    bool operator==(oddity const&) const = default;
};

/// Returns the rank's GPU among those of its node; null if it has none, or none that is known. Pure.
gpu_sample const* gpu_of(node_sample const& node, rank_sample const& rank);

/// Says whether reasons are worded for what is so now, or for a run that has ended.
enum class tense { present, past };

/// Returns what is odd, by rank, those of whole nodes last; nothing for a healthy run, whose ranks and GPUs differ a little. The reason of
/// an awaited rank names as its cause another oddity of the rank or its node, if there is one. The thresholds are in the .cpp. Pure.
std::vector<oddity> find_oddities(run_samples const& samples, tense wording = tense::present);

}  // namespace muster
