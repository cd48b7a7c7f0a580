// The components of a heterogeneous Slurm job, as this process' variables tell them. A job submitted from within another one has
// that one's SLURM_HET_* too: they count only where they are of the job that SLURM_JOB_ID names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// The variables of a job, or of one component of a heterogeneous job: `suffix` is "" or "_HET_GROUP_1". Keeps a reference.
struct slurm_component {
    environment const& variables;
    std::string suffix;

    std::string name(std::string_view base) const;
    std::optional<std::string> get(std::string_view base) const;
};

/// How many components this very job has: 1 where it is not heterogeneous, whatever another job has left in `variables`. Pure.
/// The names are those of Slurm's manual of sbatch, "OUTPUT ENVIRONMENT VARIABLES".
int count_slurm_components(environment const& variables);

/// Those of this job, in order; of a job that is not heterogeneous the job itself. `variables` must outlive the result.
std::vector<slurm_component> slurm_components(environment const& variables);

}  // namespace muster
