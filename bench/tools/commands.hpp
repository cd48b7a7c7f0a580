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

/// Runs `collectives-rank FOLDER NAME BACKEND NODES MEMORY`: one rank (bench/collectives/rank/ordered_rank.hpp), which reads orders as
/// bench/peers/mpi_collectives.c does, with tensors in plain or allocated memory, or that of the GPU. muster-bench collectives starts
/// it, not people.
int collectives_rank(std::vector<std::string> const& args, environment const& variables);

extern command_row const gpu_check_row;

/// Tries, on this node's GPUs, what needs one, each step in a process, and writes a file that says what passed. Returns the exit code: 0; 1 if a step
/// failed; 128+n after signal n. Throws muster::error, errc::unavailable without a GPU.
int gpu_check_command(given_options const& given, environment const& variables);

extern command_row const scale_row;

/// Returns the exit code: 0; 1 if a run failed, an expectation is broken or the baseline was better; 2 if --strict refuses; 128+n
/// after signal n. Throws muster::error.
int scale_command(given_options const& given, environment const& variables, std::string const& line);

extern command_row const steps_row;

/// Returns whether it is "resnet50" or "gpt2-small".
bool is_timed_network(std::string_view name) noexcept;

/// Collective over the ranks that muster run started. Between two gradients the backward pass takes its share of the time by the
/// multiplications of the layers; each gradient is submitted to the exchange under its name when it is ready, as muster.torch does.
/// After the first step every tensor must be the average. Rank 0 prints the metrics of scale, every rank its compute_s. Returns the
/// exit code; throws muster::error.
int steps_command(given_options const& given, environment const& variables);

}  // namespace muster
