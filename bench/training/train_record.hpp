// The record of one training run, and its JSON (schema "muster.train/1").
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/tools/checked_json.hpp"

namespace muster {

/// Seconds on the wall clock. Where ranks differ, the slowest rank's counts, as all wait for it; `_mean` is the mean over the
/// ranks.
struct epoch_record {
    int epoch = 0;                ///< from 0
    std::int64_t steps = 0;       ///< a rank's optimiser steps
    std::int64_t images = 0;      ///< of all ranks: every image of the train split once
    double train_s = 0;           ///< from the barrier before the first step to the end of the last step
    double first_step_s = 0;      ///< the first of those steps: buffers touched, connections made
    double steady_s = 0;          ///< the others
    double images_per_s = 0;      ///< images of the steps after the first / steady_s
    double allreduce_wait_s = 0;  ///< within train_s: the reducer's finish(), that is communication not hidden behind the
                                  ///< backward pass, and waiting for slower ranks
    double allreduce_wait_mean_s = 0;
    double loader_wait_s = 0;  ///< within train_s: waiting for the next batch
    double loader_wait_mean_s = 0;
    // Within train_s, means over the ranks: see docs/benchmarking.md, "A step in parts".
    double exposed_s = 0;   ///< communication that the training waited for
    double hidden_s = 0;    ///< communication under way beside the backward pass
    double waiting_s = 0;   ///< waiting for ranks that came later to a reduction
    double test_s = 0;      ///< from a barrier to the summed hits
    double train_loss = 0;  ///< mean over the images, as they were met during training, dropout on
    double test_loss = 0;
    std::int64_t correct = 0, test_images = 0;  ///< every image of the test split once
    double accuracy() const noexcept {
        return test_images > 0 ? static_cast<double>(correct) / static_cast<double>(test_images) : 0;
    }
    bool operator==(epoch_record const&) const = default;
};

/// Where a rank ran.
struct rank_location {
    int rank = 0;
    std::string host;
    std::string cores;  ///< that it was allowed to run on, as "0,2-3"
    bool operator==(rank_location const&) const = default;
};

struct layer_time {
    std::string name;
    double forward_us = 0, backward_us = 0;  ///< an image, on rank 0
    double dense_mflop = 0;                  ///< of an image, forward and backward, as the formulas stand
    bool operator==(layer_time const&) const = default;
};

/// What trained, where it was a GPU: rank 0's.
struct gpu_facts {
    std::string name, uuid;  ///< "": processors trained
    int clock_mhz = 0;       ///< the highest of its multiprocessors
    std::string driver, cudnn, cublas;
    std::string reduction;  ///< how the gradients go: "nccl in the graph", "nccl between the graphs", "none: one rank"
    int graphs = 0;         ///< that a step is launched as; 0: call by call
    bool operator==(gpu_facts const&) const = default;
};

struct train_record {
    // what was asked for
    std::string net = "mnist";
    std::string data;
    std::string data_note;     ///< "generated images of 3x32x32", where they are no data set; "" else
    std::string compute_note;  ///< "timed compute, no training", where nothing is trained; "" else
    int world_size = 1;
    int batch = 64;
    int epochs = 1;
    std::uint64_t seed = 42;
    double rate = 0, momentum = 0;  ///< the rate used: after scaling by world_size
    double dropout = 0.5;
    std::uint64_t bucket_bytes = 0;
    std::uint64_t parameters = 0;
    std::string protocol;
    double target_accuracy = 0;  ///< from 0 to 1; 0: none was asked for
    bool reached_target = false;
    // what it ran on
    std::string kernels, backend, identity_source;
    std::string version, mpi_library;
    gpu_facts gpu;
    std::vector<rank_location> ranks;
    // what came of it
    double startup_s =
        0;  ///< from main() to the barrier before the first step, the slowest rank's: MPI, opening and reading the data, buffers
    double communicator_s = 0, open_data_s = 0;  ///< parts of it, the slowest rank's
    std::vector<epoch_record> epochs_done;
    std::string weights_checksum;  ///< XXH3-64 of the parameters, equal on all ranks, in hexadecimal
    std::vector<layer_time> profile;
    double train_s() const noexcept;
    double test_s() const noexcept;
    double accuracy() const noexcept { return epochs_done.empty() ? 0 : epochs_done.back().accuracy(); }
    /// The mean of train_s of the last 5 epochs, or of all where there are fewer.
    double late_epoch_s() const noexcept;
    bool operator==(train_record const&) const = default;
};

inline constexpr char const* train_schema = "muster.train/1";

nlohmann::json to_json(train_record const& record);
/// Throws errc::invalid_data with the place.
train_record read_train_record(checked_json const& from);

}  // namespace muster
