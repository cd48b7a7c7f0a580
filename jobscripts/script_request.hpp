// The request for a job script: everything that it is made from, as one value.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "jobscripts/each.hpp"

namespace muster {

/// Says which scheduler a script is for; `local` is a machine without one.
enum class script_kind { slurm, pbs, cobalt, flux, local };

/// "slurm", "pbs", "cobalt", "flux", "local": also the name of the template.
std::string_view to_string(script_kind kind) noexcept;

/// Says how a Slurm job asks for its GPUs.
enum class gpu_request { gpus_per_node, gres, none };

/// A container image and what opens it; no image: none.
struct container_request {
    std::string image;
    std::string runtime = "apptainer";  ///< or another program that has `exec`; srun's plugin pyxis is among the run's options
    std::vector<std::string> options;   ///< words before the image

    bool operator==(container_request const&) const = default;
};

/// Says where results go; no folder: they stay.
struct artifact_request {
    std::string folder;                ///< shared by the nodes; %j in it becomes the job's number
    std::string every = "10min";       ///< as `muster stage out --every` reads it
    std::string node_folder = "/tmp";  ///< holds the folder that the program writes to, on each node

    bool operator==(artifact_request const&) const = default;
};

struct script_request {
    script_kind kind = script_kind::slurm;
    std::string job_name = "muster";
    std::string account;  ///< empty: no such directive; so for every text below
    std::string queue;    ///< PBS or Cobalt queue; Slurm partition or quality of service
    bool queue_is_qos = false;
    std::string constraint;                            ///< Slurm; Flux: what its nodes must have (--requires)
    gpu_request gpus_by = gpu_request::gpus_per_node;  ///< Slurm
    std::string chunk;                                 ///< PBS: resources added to each chunk of select, as in "system=polaris"
    int chunks = 0;                                    ///< PBS: what select counts, where that is not nodes; it divides the ranks
    bool whole_nodes = false;             ///< PBS, Flux: nodes are given whole, so that neither cores nor GPUs are counted
    std::string place;                    ///< PBS
    std::string filesystems;              ///< PBS
    std::string attributes;               ///< Cobalt's --attrs
    std::vector<std::string> directives;  ///< further ones without their prefix, as in "-r y"

    std::string array;               ///< "0-9%2"; empty: no array
    std::vector<int> sweep;          ///< the numbers of ranks of an array's jobs, in place of `array`
    std::vector<each_parameter> each;  ///< of an array's jobs: what {NAME} stands for in the words below, and {index}; `array` counts their combinations
    std::string task_name;           ///< Slurm: the name of each job of the array, with {NAME} in it; empty: job_name
    std::vector<std::string> after;  ///< jobs to wait for
    std::string after_kind = "ok";   ///< ok, any or notok: how they must have ended
    int chain = 0;                   ///< jobs that follow one another, of which this script is each; 0: none
    bool requeue = false;            ///< the scheduler starts the job again after a preemption
    std::string signal;              ///< Slurm: "USR1@120", sent to the script before the time limit and before a preemption

    int nodes = 1;
    int ranks_per_node = 1;  ///< one rank a GPU
    int spare_nodes = 0;     ///< asked for behind these, and idle (--spares)
    int spare_places = 0;    ///< the same on the one node, next to its ranks
    bool with_gpus = true;   ///< false: ranks without GPUs
    int cpus_per_rank = 1;   ///< 0: not asked for
    duration walltime{0};    ///< not for `local`

    bool login_shell = false;
    std::vector<std::string> modules;                              ///< each loaded by `module load`
    std::vector<std::string> setup;                                ///< shell lines of the site, taken as they are
    std::string venv;                                              ///< folder of a Python environment
    std::string conda;                                             ///< name or folder of a conda environment
    std::vector<std::pair<std::string, std::string>> environment;  ///< exported, in this order
    std::vector<std::pair<std::string, std::string>> stage_in;     ///< what each node copies before the run, and where to
    artifact_request artifacts;
    container_request container;
    std::string muster = "muster";              ///< the program, as the job finds it
    bool once = false;                          ///< the script runs the command once; it starts `muster run` itself
    std::vector<std::string> run_options;       ///< for `muster run`, after -n; none with `once`
    std::vector<std::string> node_run_options;  ///< for the runs before it, of one rank a node
    std::vector<std::string> command;           ///< the program of the ranks and its arguments: any bytes but NUL

    bool operator==(script_request const&) const = default;
};

// The folders of a node that containers of apptainer and singularity show, and those that can be shown to them.

/// Returns whether such a container shows this folder without being asked to, in the default configuration: /tmp, /var/tmp, /dev and what is
/// below. Pure.
bool is_shown_in_containers(std::string_view folder) noexcept;

/// Returns whether this folder is to be named to --bind, and can be: it is absolute, not shown already, and holds neither comma nor colon, which
/// have a meaning there. Pure.
bool is_to_be_bound(std::string_view folder) noexcept;

}  // namespace muster
