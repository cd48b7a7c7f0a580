#include "launch/scheduler/preferred_scheduler.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace muster {

namespace {

/// One that comes from the controller itself is kept under /run.
bool slurm_is_configured(environment const& variables) {
    if (variables.has("SLURM_CONF")) return true;
    constexpr std::array paths{"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf", "/etc/slurm-llnl/slurm.conf",
                               "/usr/local/etc/slurm.conf"};
    return std::any_of(paths.begin(), paths.end(), [](auto const* path) { return ::access(path, F_OK) == 0; });
}

bool pbs_is_configured(environment const& variables) {
    return ::access(variables.get_or("PBS_CONF_FILE", "/etc/pbs.conf").c_str(), R_OK) == 0;
}

}  // namespace

bool prefers_pbs(environment const& variables) {
    return pbs_is_configured(variables) && !slurm_is_configured(variables);
}

bool prefers_flux(environment const& variables) {
    return !variables.get_or("FLUX_URI", "").empty() || ::access("/run/flux/local", F_OK) == 0;
}

}  // namespace muster
