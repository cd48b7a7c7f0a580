// `muster hosts`: prints the nodes of this job, for people and for other launchers.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/scheduler/allocation.hpp"

namespace muster {

int hosts_command(std::vector<std::string> const& args, environment const& variables);

/// The allocation in each of the forms of --format; pure.
std::string hosts_table(allocation const& given);
std::string hosts_json(allocation const& given);      ///< schema muster.hosts/1
std::string hosts_hostfile(allocation const& given);  ///< "host slots=N" a line, as mpirun and prterun read it
std::string hosts_slurm(allocation const& given);     ///< one compressed list, as for srun -w
std::string hosts_pbs(allocation const& given);       ///< each host as often as it has slots, as $PBS_NODEFILE

}  // namespace muster
