// Sets the variables of a rank that frameworks read.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "pmix/identity.hpp"

namespace muster {

// The folders through which ranks find muster's Python packages.

/// Holds absolute paths that belong to one build or installation; an empty one is not added.
struct python_folders {
    std::string package;  ///< contains the package `muster` and its extension
    std::string horovod;  ///< contains a package `horovod` made of `muster`, and bin/horovodrun
    bool operator==(python_folders const&) const = default;
};

/// Returns the folders of the installation (or build tree) of `program`, an absolute path. `package` is empty if it
/// does not exist (a build without Python, or a wheel, whose package Python finds anyway), `horovod` if `as_horovod` is false.
/// Throws errc::not_found for a `horovod` that is wanted and missing.
python_folders find_python_folders(std::filesystem::path const& program, bool as_horovod);

/// Returns the folder of Python's packages (site-packages) that contains a wheel's `program`; "" for any other program. It is not
/// added to PYTHONPATH, because its packages, made for one Python, may hide those of another.
std::string wheel_folder(std::filesystem::path const& program);

/// Returns those that exist here, too: another node may not share the installation. Throws errc::not_found, naming `host`, for a
/// `horovod` that is missing here.
python_folders keep_present(python_folders const& folders, std::string const& host);

/// Adds `package` to the end of PYTHONPATH, so that the user's other folders come first; `horovod` to the front of PYTHONPATH,
/// and its bin to the front of PATH. Adds nothing twice. Pure.
void add_python_folders(environment& variables, python_folders const& folders);

// The variables that tell a rank's program which GPU to use.

/// Sets for a rank with a GPU: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER (AMD: ROCR_VISIBLE_DEVICES; Intel: ZE_AFFINITY_MASK),
/// MUSTER_GPU_INDEX, which its program passes to cudaSetDevice, JAX_LOCAL_DEVICE_IDS, and MUSTER_GPU_UUID if it is known. Removes
/// lists of AMD's and of other vendors that would apply in addition.
void set_gpu_variables(environment& variables, binding const& place);

/// Holds where the ranks of a job find each other.
struct rendezvous {
    std::string address;               ///< MASTER_ADDR
    int master_port = 0;               ///< MASTER_PORT
    int jax_port = 0;                  ///< JAX's coordinator, which may run together with a torch store in one process
    std::vector<std::string> workers;  ///< "address:port" of each rank, for TensorFlow's TF_CONFIG; empty: too many to list
};

inline constexpr int most_tensorflow_workers = 256;  ///< TF_CONFIG lists every rank in every rank's environment

/// Sets what muster's own libraries, PyTorch, Horovod, JAX and TensorFlow read (names and meaning: each framework's launcher
/// documentation), the visible GPUs and OMP_NUM_THREADS. What tells a rank who it is always overrides inherited values; tuning
/// (OMP_NUM_THREADS, GLOO_SOCKET_IFNAME, PYTHONUNBUFFERED, …) never overrides the user's.
void set_rank_variables(environment& variables, identity const& who, binding const& place, rendezvous const& point);

/// Returns the variables that restrict NCCL, Open MPI, MPICH (and its libfabric) and UCX to a network interface of this node
/// (--network-interface); none for "". UCX also gets the interface's InfiniBand ports, from `sysfs`.
std::vector<std::pair<std::string, std::string>> interface_variables(std::string const& interface,
                                                                     std::string const& sysfs = "/sys/class/net");

/// If `command` starts such a container ("apptainer exec …", also after other words), adds the folder of the engine's PMIx
/// server, if it is on this node, to APPTAINER_BIND or SINGULARITY_BIND, so that ranks share the server's memory instead of
/// asking it for each value; and makes UCX open shared memory by name, since ranks in several user namespaces may not open each
/// other's descriptors. Keeps the user's values. Does nothing for any other command.
void set_container_variables(environment& variables, std::vector<std::string> const& command);

/// One rank, for complete_variables. The references must outlive it.
struct rank_setting {
    identity const& who;
    binding const& place;
    rendezvous const& point;
    std::vector<std::string> const& exports;  ///< -x
    std::vector<std::string> const& command;
    python_folders python;
    std::string error_folder = {};  ///< the run's folder for what torch's @record writes; or ""
};

/// Sets all that a rank's program gets from muster, in the order in which later ones override earlier ones: set_rank_variables
/// and TORCHELASTIC_ERROR_FILE (a file in error_folder for each rank and generation; removed without a folder), set_explicit,
/// add_python_folders, set_container_variables.
void complete_variables(environment& variables, rank_setting const& rank);

// The environment of a rank that an engine started on another node.

/// Merges the variables of the launcher's shell (`of_launcher`, without those that identify the launcher) and those that the
/// engine gave this process (`of_node`): the launcher's values, as if the rank had been started from there, except for the node's
/// own values of what belongs to the node (TMPDIR, HOSTNAME, its GPUs, …) or to the engine (SLURM_*, PMIX_*, OMPI_*, PMI_*,
/// PALS_*, …), and variables that only the node has. `own_step` false: the engine runs one daemon on each node (mpirun, Hydra),
/// so Slurm's numbers of a step and task are the daemon's and are left out. Pure.
environment rank_environment(environment const& of_launcher, environment const& of_node, bool own_step);

// The variables that `-x` gives to the ranks.

/// Sets each `NAME=value` in `variables`; a bare `NAME` must already be set. Throws errc::usage naming the entry.
void apply_exports(environment& variables, std::vector<std::string> const& exports);

/// Returns whether PBS has set OMP_NUM_THREADS: it gives every process of a job the CPUs of a whole chunk in it, as in NCPUS,
/// however many ranks share the chunk. Pure.
bool is_threads_of_pbs(environment const& variables);

/// Returns the launcher's variables as its ranks get them: `inherited` without those of an outer launcher, without PBS's
/// OMP_NUM_THREADS unless an export names it, and with the exports. Throws as apply_exports.
environment variables_for_ranks(environment const& inherited, std::vector<std::string> const& exports);

/// Removes the variables whose names match one of `patterns` (as with a shell's wildcards), except for those that `-x` names.
void leave_out(environment& variables, std::vector<std::string> const& patterns, std::vector<std::string> const& exports);

/// Sets each `NAME=value` again, after muster's own variables: `-x` overrides these, too.
void set_explicit(environment& variables, std::vector<std::string> const& exports);

}  // namespace muster
