// The commands of muster-bench-dev: their rows and the functions that run them. Each returns an exit code and throws muster::error.
#pragma once

#include <span>

#include "base/command/command_set.hpp"
#include "base/command/given_options.hpp"
#include "base/environment.hpp"
#include "base/text.hpp"

namespace muster {

extern command_row const exchange_row;

/// Runs as one of the ranks that `muster run` started; rank 0 prints a table or, with --json, JSON, on standard output. Every
/// result is checked while it is timed. Returns an exit code, 1 if one was wrong; throws muster::error.
int exchange_command(given_options const& given, environment const& variables);

extern command_row const launch_row;

/// Starts programs by muster and by the launchers found here, taking turns, and prints the medians; or looks for hangs. Returns
/// the exit code: 1 if a run of muster's failed or hung.
int launch_command(given_options const& given, environment const& variables);

extern command_row const io_row;

/// Measures on this process and its children (no MPI), prints a table or, with --json, JSON, on standard output.
int io_command(given_options const& given, environment const& variables);

extern command_row const recover_row;

/// Kills a rank of a small training, by muster run and torchrun, taking turns, and prints a table of what follows. Returns the exit code: 1 if
/// a run of muster's failed.
int recover_command(given_options const& given, environment const& variables);

/// io_peers.py, io_mpi_peer.py, io_convert_peer.py and recover.py, as they were when this program was built.
std::span<embedded_text const> dev_files() noexcept;

}  // namespace muster
