// Lines that show how busy a run's GPUs are, made from gpus.json in its folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// A GPU as gpus.json describes it; a number that the file does not give is -1.
struct shown_gpu {
    std::string number;
    double busy_percent = -1;
    double mean_busy_percent = -1;
    double memory_bytes = -1;
    double used_bytes = -1;
    double most_used_bytes = -1;
    double watts = -1;
};
struct shown_gpu_node {
    std::string host;
    double at = 0;  ///< when the GPUs were last read, in seconds since 1970
    std::vector<shown_gpu> gpus;
};

/// Returns what can be read of any text: a file that another program has written is no error of the job. Pure.
std::vector<shown_gpu_node> parse_gpu_use(std::string_view text);
/// Does the same for a run's folder; returns nothing if it has no such file.
std::vector<shown_gpu_node> read_gpu_use(std::string const& run_folder);

/// Returns a line for each node, "node1: GPU 0 87 %, 12.3 of 80.0 GiB, 312 W; GPU 1 ...". Figures older than half a minute say
/// so. Pure.
std::vector<std::string> gpu_lines(std::vector<shown_gpu_node> const& nodes, double now);

/// Returns one line about all GPUs: "16 GPUs of 8 nodes: mean 83 %, least 12 % (node7 GPU 1), most memory 78.0 of 80.0 GiB (node3
/// GPU 0)". Pure.
std::string gpu_overview(std::vector<shown_gpu_node> const& nodes);

/// Returns a line for each GPU about the whole run: "node1 GPU 0: mean 80 %, at most 40.1 GiB, last 87 %, 12.3 of 80.0 GiB, 312
/// W". Pure.
std::vector<std::string> gpu_summary(std::vector<shown_gpu_node> const& nodes);

}  // namespace muster
