// The commands of muster-bench: their rows and the functions that run them. Each returns an exit code and throws muster::error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/command/command_set.hpp"
#include "base/command/given_options.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const collectives_row;

/// `line` is the command line, for the JSON. Measures collectives over muster's backends and over the libraries found on this
/// machine, taking turns, or, as one rank of a job, over that; prints the tables (of a job on rank 0). Returns the exit code: 1 if any
/// result was wrong. Throws errc::usage, comm_error.
int collectives_command(given_options const& given, environment const& variables, std::string const& line);

extern command_row const collectives_rank_row;

/// `collectives-rank FOLDER NAME BACKEND NODES MEMORY`: one rank (bench/collectives/rank/ordered_rank.hpp), which reads orders as
/// bench/peers/mpi_collectives.c does, with tensors in plain or allocated memory, or that of the GPU. Started by muster-bench
/// collectives, not by people.
int collectives_rank(std::vector<std::string> const& args, environment const& variables);

extern command_row const gpu_check_row;

/// Tries, on this node's GPUs, what wants one, a step a process, and writes a file that says what passed. Returns the exit code: 0; 1 where a step failed;
/// 128+n after signal n. Throws muster::error, errc::unavailable where there is no GPU.
int gpu_check_command(given_options const& given, environment const& variables);

extern command_row const scale_row;

/// Returns the exit code: 0; 1 where a run failed, an expectation is broken or the baseline was better; 2 where --strict refuses;
/// 128+n after signal n. Throws muster::error.
int scale_command(given_options const& given, environment const& variables, std::string const& line);

extern command_row const steps_row;

/// "resnet50", "gpt2-small".
bool is_timed_network(std::string_view name) noexcept;

/// Collective over the ranks that muster run started. Between the gradients of two tensors the backward pass takes its share of the
/// time by the multiplications of the layers; each gradient is submitted to the exchange under its name when it is ready, as by
/// muster.torch. After the first step every tensor is checked to be the average. Rank 0 prints the metrics of scale, every rank its
/// compute_s. Returns the exit code; throws muster::error.
int steps_command(given_options const& given, environment const& variables);

}  // namespace muster
