// The identity of a rank: its number, world and node, by whatever launcher it was started.
#pragma once

#include <string>
#include <string_view>

#include "base/environment.hpp"

namespace muster {

/// A rank's place in its world.
struct identity {
    /// Names the variables that the identity was read from.
    enum class source { muster, pmix, slurm, pmi, pals, ompi, singleton };

    std::string nspace;  ///< the name of the job step; equal on all its ranks
    int rank = 0;        ///< 0 … world_size-1
    int world_size = 1;
    int local_rank = 0;  ///< among the ranks of this node
    int local_size = 1;
    int node_rank = 0;  ///< which node of the job this is
    int node_count = 1;
    std::string host;  ///< this node's name
    source from = source::singleton;
    bool operator==(identity const&) const = default;
};

std::string_view to_string(identity::source from) noexcept;

/// Reads the variables of muster itself (MUSTER_*), else of a PMIx server, Slurm, a PMI-1 process manager, PALS or Open MPI; else
/// the process is a singleton. `host` is this machine's name, used where no variable tells it. Pure. Throws errc::parse on a
/// variable that does not parse or lies outside its world, and errc::singleton if two sources contradict each other.
identity identify(environment const& variables, std::string_view host);

/// The same, with gethostname().
identity identify(environment const& variables);

/// Sets the variables by which muster's own libraries, PyTorch and Horovod know a rank's place. What identify() reads of them is `who`, with source::muster.
void set_place(environment& variables, identity const& who);

}  // namespace muster
