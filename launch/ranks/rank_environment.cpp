#include "launch/ranks/rank_variables.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace muster {

namespace {

using name = std::string_view;

constexpr std::array engine_prefixes{
    name{"SLURM_"},
    name{"SRUN_"},
    name{"PMI_"},
    name{"PMI2_"},
    name{"PMIX_"},
    name{"OMPI_"},
    name{"PRTE_"},
    name{"ORTE_"},
    name{"PALS_"},
    name{"HYDI_"},
    name{"HYDRA_"},
    name{"JSM_"},
    name{"PBS_"},
    name{"COBALT_"},
    name{"LSB_"},
    name{"FLUX_"},
    name{"OPAL_"},
    name{"MPI_LOCAL"},
    name{"MPIR_CVAR_CH3_INTERFACE_HOSTNAME"},
};

constexpr std::array node_names{
    name{"HOSTNAME"},
    name{"HOST"},
    name{"TMPDIR"},
    name{"PWD"},
    name{"OLDPWD"},
    name{"SHLVL"},
    name{"_"},
    name{"CUDA_VISIBLE_DEVICES"},
    name{"CUDA_DEVICE_ORDER"},
    name{"ROCR_VISIBLE_DEVICES"},
    name{"HIP_VISIBLE_DEVICES"},
    name{"GPU_DEVICE_ORDINAL"},
    name{"ZE_AFFINITY_MASK"},
    name{"NVIDIA_VISIBLE_DEVICES"},
    name{"XDG_RUNTIME_DIR"},
    name{"XDG_SESSION_ID"},
    name{"SSH_AUTH_SOCK"},
    name{"SSH_CLIENT"},
    name{"SSH_CONNECTION"},
    name{"SSH_TTY"},
    name{"MUSTER_LAUNCHER"},
    name{"MUSTER_TOKEN"},
};

// Slurm's numbers of one task and of its step; a daemon's are not those of its ranks.
constexpr std::array task_prefixes{name{"SLURM_STEP"}, name{"SLURM_SRUN_COMM_"}, name{"SLURM_PMIX"}};
constexpr std::array task_names{
    name{"SLURM_PROCID"},   name{"SLURM_LOCALID"}, name{"SLURM_NODEID"}, name{"SLURM_GTIDS"},
    name{"SLURM_TASK_PID"}, name{"SLURM_NTASKS"},  name{"SLURM_NPROCS"}, name{"SLURM_TASKS_PER_NODE"},
};

bool begins_with_one_of(name text, auto const& prefixes) {
    return std::ranges::any_of(prefixes, [&](name p) { return text.starts_with(p); });
}

bool is_one_of(name text, auto const& names) {
    return std::ranges::find(names, text) != names.end();
}

bool belongs_to_node(name text) {
    return begins_with_one_of(text, engine_prefixes) || is_one_of(text, node_names);
}

bool tells_the_task(name text) {
    return begins_with_one_of(text, task_prefixes) || is_one_of(text, task_names);
}

}  // namespace

environment rank_environment(environment const& of_launcher, environment const& of_node, bool own_step) {
    environment merged;
    for (auto const& [key, value] : of_launcher)
        if (!is_one_of(key, node_names)) merged.set(key, value);
    bool const threads_of_pbs = is_threads_of_pbs(of_node);
    for (auto const& [key, value] : of_node) {
        if (threads_of_pbs && key == "OMP_NUM_THREADS") continue;
        if (!own_step && tells_the_task(key)) {
            merged.unset(key);
            continue;
        }
        if (belongs_to_node(key))
            merged.set(key, value);
        else
            merged.set_default(key, value);
    }
    merged.unset("MUSTER_LAUNCHER");
    merged.unset("MUSTER_TOKEN");
    merged.unset("MUSTER_AGENT_SOCKET");
    return merged;
}

}  // namespace muster
