// The peers of comparisons: scripts and sources that this program holds, and a runner of the PyTorch one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/embedded_text.hpp"
#include "base/environment.hpp"

namespace muster {

/// The files torch_mnist.py, published_mnist.py, mpi_collectives.c (compiled with each MPI found on the machine), gloo_collectives.py, io_peers.py,
/// io_mpi_peer.py and io_convert_peer.py, as they were when this program was built.
std::span<embedded_text const> peer_files() noexcept;

/// What one run of a peer reports (schema "muster.peer/1").
struct peer_record {
    std::string name, version, details;
    int parameters = 0;
    double startup_s = 0;
    double train_s = 0;  ///< of all epochs
    double images_per_s = 0;
    double accuracy = 0;  ///< after the last epoch
};

/// Runs the PyTorch peer with one thread. `options` are the script's own. Throws errc::not_found without the interpreter,
/// errc::unavailable with what it printed last if it failed, for example because it has no torch or h5py.
peer_record run_torch_peer(std::string const& python, std::vector<std::string> const& options, environment const& variables);

}  // namespace muster
