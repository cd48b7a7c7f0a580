#include "pmix/scrub.hpp"

#include <array>
#include <string_view>

#include "base/text.hpp"

namespace muster::pmix {
namespace {

using names = std::string_view;

// Launchers set these; they are never a user's setting.
constexpr std::array prefixes{
    names{"PMI_"},
    names{"PMI2_"},
    names{"PALS_"},
    names{"MPI_LOCAL"},
    names{"HYDI_"},
    names{"JSM_"},
    names{"OMPI_WORLD_"},
    names{"OMPI_COMM_WORLD_"},
    names{"MV2_COMM_WORLD_"},
    names{"FLUX_TASK_"},
    names{"SLURM_STEP_"},
    names{"SLURM_SRUN_COMM_"},
    names{"SLURM_PMIXP_"},
    names{"SLURM_PMIX_"},
    names{"OMPI_MCA_ess_base_"},
};

constexpr std::array single{
    // Open MPI's mpirun, and PRRTE
    names{"MUSTER_GENERATION"},
    names{"MUSTER_LAST_GENERATION"},
    names{"MUSTER_LIFE"},
    names{"OMPI_UNIVERSE_SIZE"},
    names{"OMPI_APP_CTX_NUM_PROCS"},
    names{"OMPI_COMMAND"},
    names{"OMPI_ARGV"},
    names{"OMPI_FILE_LOCATION"},
    names{"OMPI_FIRST_RANKS"},
    names{"OMPI_NUM_APP_CTX"},
    names{"OMPI_MCA_orte_hnp_uri"},
    names{"OMPI_MCA_orte_local_daemon_uri"},
    names{"OMPI_MCA_orte_ess_num_procs"},
    names{"OMPI_MCA_orte_ess_node_rank"},
    names{"PRTE_LAUNCHED"},
    // Flux: its job id alone makes Open MPI 4 look for Flux
    names{"FLUX_JOB_ID"},
    names{"FLUX_JOB_SIZE"},
    names{"FLUX_JOB_NNODES"},
    // Slurm: in a batch script the first three are there too, although no task is meant. With SLURM_NTASKS gone, Slurm-aware
    // frameworks
    // look at the variables that muster sets.
    names{"SLURM_PROCID"},
    names{"SLURM_LOCALID"},
    names{"SLURM_NODEID"},
    names{"SLURM_STEPID"},
    names{"SLURM_GTIDS"},
    names{"SLURM_TASK_PID"},
    names{"SLURM_NTASKS"},
    names{"SLURM_NPROCS"},
    names{"SLURM_NTASKS_PER_NODE"},
    names{"SLURM_TASKS_PER_NODE"},
    names{"SLURM_MPI_TYPE"},
    names{"SLURM_LAUNCH_NODE_IPADDR"},
    // muster
    names{"MUSTER_NSPACE"},
    names{"MUSTER_RANK"},
    names{"MUSTER_WORLD_SIZE"},
    names{"MUSTER_LOCAL_RANK"},
    names{"MUSTER_LOCAL_SIZE"},
    names{"MUSTER_NODE_RANK"},
    names{"MUSTER_NODE_COUNT"},
    names{"MUSTER_HOST"},
    names{"MUSTER_EVENTS"},
    names{"MUSTER_OVER_NODES"},
    names{"MUSTER_KEPT_STATE"},
    names{"MUSTER_MEMBERS"},
    names{"MUSTER_GPU_INDEX"},
    names{"MUSTER_GPU_UUID"},
};

// Set by mpirun for its ranks, but also what a user may set: they go only inside such a job.
constexpr std::array mpirun_prefixes{names{"OMPI_MCA_orte_"}, names{"OMPI_MCA_prte_"}};
constexpr std::array mpirun_single{
    names{"OMPI_MCA_ess"},
    names{"OMPI_MCA_pmix"},
    names{"OMPI_MCA_initial_wdir"},
    names{"OMPI_MCA_num_procs"},
    names{"OMPI_MCA_mpi_oversubscribe"},
    names{"OMPI_MCA_rmaps_base_oversubscribe"},
    names{"OMPI_MCA_shmem_RUNTIME_QUERY_hint"},
};

/// Our own ranks have OMPI_COMM_WORLD_RANK too, so that is no sign of mpirun.
bool inside_mpirun(environment const& variables) {
    return variables.has("OMPI_MCA_orte_ess_num_procs") || variables.has("OMPI_MCA_ess_base_jobid") ||
           variables.has("PRTE_LAUNCHED");
}

void remove_pmix(environment& variables) {
    std::vector<std::string> theirs;
    for (auto const& [name, value] : variables)
        if (name.starts_with("PMIX_") && !name.starts_with("PMIX_MCA_")) theirs.push_back(name);
    for (auto const& name : theirs) variables.unset(name);
}

void remove_own_defaults(environment& variables) {
    auto const told = variables.get(defaults_variable);
    if (!told) return;
    variables.unset(defaults_variable);
    for (auto const entry : split(*told, ';')) {
        auto const equals = entry.find('=');
        if (equals == std::string_view::npos) continue;
        // A variable that somebody changed since is that somebody's choice.
        if (variables.get(entry.substr(0, equals)) == entry.substr(equals + 1)) variables.unset(entry.substr(0, equals));
    }
}

}  // namespace

void scrub_inherited(environment& variables) {
    if (inside_mpirun(variables)) {
        for (auto const prefix : mpirun_prefixes) variables.unset_prefix(prefix);
        for (auto const name : mpirun_single) variables.unset(name);
    }
    // Hydra's: the host's name again, which its own ranks would take to be the interface to use.
    if (variables.has("HYDI_CONTROL_FD")) variables.unset("MPIR_CVAR_CH3_INTERFACE_HOSTNAME");
    remove_own_defaults(variables);
    remove_pmix(variables);
    for (auto const prefix : prefixes) variables.unset_prefix(prefix);
    for (auto const name : single) variables.unset(name);
}

}  // namespace muster::pmix
