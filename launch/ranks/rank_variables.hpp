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

// Folders that bring muster's Python packages to ranks.

/// Absolute paths of what belongs to one build or installation; an empty one is not added.
struct python_folders {
    std::string package;  ///< holds the package `muster` and its extension
    std::string horovod;  ///< holds a package `horovod` made of `muster`, and bin/horovodrun
    bool operator==(python_folders const&) const = default;
};

/// The folders of the installation (or build tree) that `program`, an absolute path, belongs to. `package` is empty where
/// it is not there (a build without Python, or a wheel, whose package pip has put where Python finds it), `horovod` where `as_horovod` is false. Throws errc::not_found for a `horovod` that is wanted and not there.
python_folders find_python_folders(std::filesystem::path const& program, bool as_horovod);

/// The folder of Python's packages (site-packages) that a `program` of a wheel lies in; "" for any other program. It is not added to
/// PYTHONPATH: the packages of one Python in it may hide those of another.
std::string wheel_folder(std::filesystem::path const& program);

/// Those of them that are here too: another node need not share the installation. Throws errc::not_found for a `horovod` that
/// is not here, naming `host`.
python_folders keep_present(python_folders const& folders, std::string const& host);

/// Adds them: `package` to the end of PYTHONPATH, so that whatever else the user has comes first; `horovod` to the front of
/// PYTHONPATH, and its bin to the front of PATH. Nothing is added twice. Pure.
void add_python_folders(environment& variables, python_folders const& folders);

// The variables that tell a rank's program which GPU is its own.

/// Sets for a rank with a GPU: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER (AMD: ROCR_VISIBLE_DEVICES; Intel: ZE_AFFINITY_MASK),
/// MUSTER_GPU_INDEX, which is what its program passes to cudaSetDevice, JAX_LOCAL_DEVICE_IDS, and MUSTER_GPU_UUID if it is known.
/// Lists of AMD's and of other vendors that would be applied on top are removed.
void set_gpu_variables(environment& variables, binding const& place);

/// Where the ranks of a job find each other.
struct rendezvous {
    std::string address;               ///< MASTER_ADDR
    int master_port = 0;               ///< MASTER_PORT
    int jax_port = 0;                  ///< JAX's coordinator, which may run with a torch store in one process
    std::vector<std::string> workers;  ///< "address:port" of each rank, for TensorFlow's TF_CONFIG; empty: too many to list
};

inline constexpr int most_tensorflow_workers = 256;  ///< TF_CONFIG lists every rank in every rank's environment

/// Sets in `variables` what muster's own libraries, PyTorch, Horovod, JAX and TensorFlow read (names and meaning: each
/// framework's launcher documentation), the GPUs that stay visible and OMP_NUM_THREADS. What tells a rank who it is always
/// overrides what was inherited; tuning (OMP_NUM_THREADS, GLOO_SOCKET_IFNAME, PYTHONUNBUFFERED, …) never overrides the user.
void set_rank_variables(environment& variables, identity const& who, binding const& place, rendezvous const& point);

/// The variables by which NCCL, Open MPI, MPICH (and its libfabric) and UCX keep to a network interface of this node (--network-interface); none for "". UCX also
/// gets the interface's InfiniBand ports, from `sysfs`.
std::vector<std::pair<std::string, std::string>> interface_variables(std::string const& interface,
                                                                     std::string const& sysfs = "/sys/class/net");

/// Where `command` starts such a container ("apptainer exec …", also behind other words): the folder of the engine's PMIx server, if it is
/// on this node, is put to APPTAINER_BIND or SINGULARITY_BIND, so that ranks share the server's memory instead of asking it for each value;
/// and UCX opens shared memory by name, since ranks in several user namespaces may not open each other's descriptors. What the user has
/// set stays. Any other command: nothing.
void set_container_variables(environment& variables, std::vector<std::string> const& command);

/// One rank, for complete_variables. The references must outlive it.
struct rank_setting {
    identity const& who;
    binding const& place;
    rendezvous const& point;
    std::vector<std::string> const& exports;  ///< -x
    std::vector<std::string> const& command;
    python_folders python;
    std::string error_folder = {};  ///< of the run, for what torch's @record writes; "" where there is none
};

/// Sets all that a rank's program gets from muster, in the order in which one overrides the other: set_rank_variables and
/// TORCHELASTIC_ERROR_FILE (a file in error_folder for each rank and generation; removed without a folder), set_explicit,
/// add_python_folders, set_container_variables.
void complete_variables(environment& variables, rank_setting const& rank);

// The environment of a rank that an engine started on another node.

/// What the launcher's shell had (`of_launcher`, without what told who the launcher is) and what the engine gave this process
/// (`of_node`), in one: the launcher's values, as if the rank had been started from there, but the node's own for what belongs to
/// the node (TMPDIR, HOSTNAME, its GPUs, …) or to the engine (SLURM_*, PMIX_*, OMPI_*, PMI_*, PALS_*, …), and whatever only the
/// node has. `own_step` false: the engine runs one daemon a node (mpirun, Hydra), so Slurm's numbers of a step and task are the
/// daemon's and are left out. Pure.
environment rank_environment(environment const& of_launcher, environment const& of_node, bool own_step);

// The variables that `-x` gives to the ranks.

/// Sets each `NAME=value` in `variables`; a bare `NAME` must be there already. Throws errc::usage naming the entry.
void apply_exports(environment& variables, std::vector<std::string> const& exports);

/// Whether OMP_NUM_THREADS is PBS's own word: PBS gives every process of a job the CPUs of a whole chunk in it, as in NCPUS,
/// however many ranks share the chunk. Pure.
bool is_threads_of_pbs(environment const& variables);

/// The launcher's variables as its ranks get them: `inherited` without what told of an outer launcher, without
/// PBS's OMP_NUM_THREADS unless an export names it, and with the exports. Throws as apply_exports.
environment variables_for_ranks(environment const& inherited, std::vector<std::string> const& exports);

/// Removes the variables whose names match one of `patterns` (as a shell's wildcards do), except for those that `-x` names.
void leave_out(environment& variables, std::vector<std::string> const& patterns, std::vector<std::string> const& exports);

/// Sets each `NAME=value` again, after muster set its own: `-x` also overrides what muster sets.
void set_explicit(environment& variables, std::vector<std::string> const& exports);

}  // namespace muster
