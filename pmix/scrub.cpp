#include "pmix/scrub.hpp"

#include <string_view>

#include "base/text.hpp"

namespace muster::pmix {
namespace {

// Launchers set these; they are never a user's setting.
constexpr std::string_view prefixes[] = {"PMI_",
                                         "PMI2_",
                                         "PALS_",
                                         "MPI_LOCAL",
                                         "HYDI_",
                                         "JSM_",
                                         "OMPI_WORLD_",
                                         "OMPI_COMM_WORLD_",
                                         "MV2_COMM_WORLD_",
                                         "FLUX_TASK_",
                                         "SLURM_STEP_",
                                         "SLURM_SRUN_COMM_",
                                         "SLURM_PMIXP_",
                                         "SLURM_PMIX_",
                                         "OMPI_MCA_ess_base_"};

constexpr std::string_view single[] = {
    // Open MPI's mpirun, and PRRTE
    "OMPI_UNIVERSE_SIZE", "OMPI_APP_CTX_NUM_PROCS", "OMPI_COMMAND", "OMPI_ARGV", "OMPI_FILE_LOCATION", "OMPI_FIRST_RANKS",
    "OMPI_NUM_APP_CTX", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_orte_local_daemon_uri", "OMPI_MCA_orte_ess_num_procs",
    "OMPI_MCA_orte_ess_node_rank", "PRTE_LAUNCHED",
    // Flux: its job id alone makes Open MPI 4 look for Flux
    "FLUX_JOB_ID", "FLUX_JOB_SIZE", "FLUX_JOB_NNODES",
    // Slurm: in a batch script the first three are there too, although no task is meant. With SLURM_NTASKS gone, Slurm-aware
    // frameworks look at the variables that muster sets.
    "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEPID", "SLURM_GTIDS", "SLURM_TASK_PID", "SLURM_NTASKS",
    "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_MPI_TYPE", "SLURM_LAUNCH_NODE_IPADDR",
    // muster
    "MUSTER_GENERATION", "MUSTER_LAST_GENERATION", "MUSTER_LIFE", "MUSTER_NSPACE", "MUSTER_RANK", "MUSTER_WORLD_SIZE",
    "MUSTER_LOCAL_RANK", "MUSTER_LOCAL_SIZE", "MUSTER_NODE_RANK", "MUSTER_NODE_COUNT", "MUSTER_HOST", "MUSTER_EVENTS",
    "MUSTER_OVER_NODES", "MUSTER_KEPT_STATE", "MUSTER_WAIT_PAGE", "MUSTER_MEMBERS", "MUSTER_GPU_INDEX", "MUSTER_GPU_UUID"};

// Set by mpirun for its ranks, but also what a user may set: they go only inside such a job.
constexpr std::string_view mpirun_prefixes[] = {"OMPI_MCA_orte_", "OMPI_MCA_prte_"};
constexpr std::string_view mpirun_single[] = {"OMPI_MCA_ess",
                                              "OMPI_MCA_pmix",
                                              "OMPI_MCA_initial_wdir",
                                              "OMPI_MCA_num_procs",
                                              "OMPI_MCA_mpi_oversubscribe",
                                              "OMPI_MCA_rmaps_base_oversubscribe",
                                              "OMPI_MCA_shmem_RUNTIME_QUERY_hint"};

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
