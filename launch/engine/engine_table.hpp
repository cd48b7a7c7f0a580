// What starts the rank shims on the nodes: a table of engines, and the command line of each.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "launch/placement/mapping.hpp"
#include "launch/scheduler/allocation.hpp"
#include "launch/scheduler/read_allocation.hpp"

namespace muster {

/// What is to be started: `shim` once a rank, where `map` says.
struct engine_job {
    allocation given;
    mapping map;
    std::string this_host;                     ///< short name of the machine that muster run is on
    std::vector<std::string> shim;             ///< argv of the rank shim, then the program's: absolute path first
    std::string program;                       ///< the ranks' program as found here, or empty: tells which MPI it is linked with
    environment variables;                     ///< of the engine's own process; the shims' are among them
    std::vector<std::string> shim_variables;   ///< names of those that must reach each shim, whatever the engine passes on
    std::vector<std::string> extra_arguments;  ///< --engine-args, put behind muster's own options
    std::string scratch_dir;                   ///< where files for the engine may be written, on this machine
    std::string network_interface;             ///< --network-interface, or empty
    bool probe = false;                        ///< one shim a node that looks around: no PMIx, no GPU binding
};

/// Over what an MPI library meets its world below an engine.
enum class wire_up {
    none,  ///< it cannot: each rank would come up alone
    pmix,
    pmi,  ///< PMI-1 or PMI-2
};

/// How to start an engine: what is needed to print it (--dry-run) and to run it.
struct engine_command {
    std::vector<std::string> argv;
    environment variables;
    std::vector<std::pair<std::string, std::string>> files;  ///< path and contents, to be written first
    wire_up speaks = wire_up::pmix;
    std::string note = {};  ///< what the user should know about it, or empty
    bool operator==(engine_command const&) const = default;
};

struct engine_row {
    std::string_view name;  ///< as in --engine NAME
    /// Why it cannot run this job here; nothing if it can. May ask the engine's programs (srun --mpi=list, mpirun --version).
    std::optional<std::string> (*unavailable)(engine_job const& job, scheduler_sources const& sources);
    /// Throws errc::unavailable, errc::placement if this layout is beyond the engine.
    engine_command (*command)(engine_job const& job, scheduler_sources const& sources);
    /// What ends from outside the scheduler's step that the shims are in ("4242.0"), as scancel does; empty: there is no such
    /// thing.
    std::vector<std::string> (*cancel)(std::string const& step);
};

/// srun, mpirun, mpiexec, in this order. The engine for one node (embedded) is not in this table: it starts ranks itself.
std::span<engine_row const> engines() noexcept;

/// The first that can run the job, or the one called `forced` (may be empty). Refusals go to `tried`, a line each. Throws
/// errc::unavailable with all reasons, and one thing to do, if there is none.
engine_row const& choose_engine(engine_job const& job, scheduler_sources const& sources, std::string_view forced,
                                std::vector<std::string>* tried = nullptr);

/// The command as lines for a shell: its files as here-documents, then the variables in which it differs from `base`, then argv.
std::string shell_text(engine_command const& command, environment const& base);

}  // namespace muster
