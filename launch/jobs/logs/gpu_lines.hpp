// Lines that show how busy a run's GPUs are, made from its samples.
#pragma once

#include <string>
#include <vector>

#include "launch/samples/run_samples.hpp"

namespace muster {

/// Returns the nodes with GPUs of the run with this folder; none where its samples cannot be read.
std::vector<node_sample> read_gpu_nodes(std::string const& run_folder);

/// Returns a line for each node, "node1: GPU 0 87 %, 12.3 of 80.0 GiB, 312 W; GPU 1 ...". Figures older than half a minute say
/// so. Pure.
std::vector<std::string> gpu_lines(std::vector<node_sample> const& nodes, double now);

/// Returns one line about all GPUs: "16 GPUs of 8 nodes: mean 83 %, least 12 % (node7 GPU 1), most memory 78.0 of 80.0 GiB (node3
/// GPU 0)". Pure.
std::string gpu_overview(std::vector<node_sample> const& nodes);

/// Returns a line for each GPU about the whole run: "node1 GPU 0: mean 80 %, at most 40.1 GiB, last 87 %, 12.3 of 80.0 GiB, 312
/// W". Pure.
std::vector<std::string> gpu_summary(std::vector<node_sample> const& nodes);

}  // namespace muster
