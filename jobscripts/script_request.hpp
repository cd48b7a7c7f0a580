// The request for a job script: everything that it is made from, as one value.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace muster {

/// Which scheduler a script is for; `local` is a machine without one.
enum class script_kind { slurm, pbs, cobalt, local };

/// "slurm", "pbs", "cobalt", "local": also the name of the template.
std::string_view to_string(script_kind kind) noexcept;

/// How a Slurm job asks for its GPUs.
enum class gpu_request { gpus_per_node, gres, none };

struct script_request {
    script_kind kind = script_kind::slurm;
    std::string job_name = "muster";
    std::string account;  ///< empty: no such directive; so for every text below
    std::string queue;    ///< PBS or Cobalt queue; Slurm partition or quality of service
    bool queue_is_qos = false;
    std::string constraint;                            ///< Slurm
    gpu_request gpus_by = gpu_request::gpus_per_node;  ///< Slurm
    std::string chunk;                                 ///< PBS: resources added to each chunk of select, as in "system=polaris"
    bool whole_nodes = false;             ///< PBS: nodes are given whole, so that a chunk counts neither cores nor GPUs
    std::string place;                    ///< PBS
    std::string filesystems;              ///< PBS
    std::string attributes;               ///< Cobalt's --attrs
    std::vector<std::string> directives;  ///< further ones without their prefix, as in "-r y"

    int nodes = 1;
    int ranks_per_node = 1;  ///< one rank a GPU
    int cpus_per_rank = 1;   ///< 0: not asked for
    duration walltime{0};    ///< not for `local`

    bool login_shell = false;
    std::vector<std::string> modules;                              ///< each loaded by `module load`
    std::vector<std::string> setup;                                ///< shell lines of the site, taken as they are
    std::vector<std::pair<std::string, std::string>> environment;  ///< exported, in this order
    std::string muster = "muster";                                 ///< the program, as the job finds it
    std::vector<std::string> run_options;                          ///< for `muster run`, after -n
    std::vector<std::string> command;  ///< the program of the ranks and its arguments: any bytes but NUL

    bool operator==(script_request const&) const = default;
};

}  // namespace muster
