// The rows of the table of settings.
#include "launch/settings/setting.hpp"
#include "launch/settings/setting_values.hpp"

namespace muster {

namespace {

using kind = setting_kind;
using group = setting_group;
using use = setting_use;

constexpr std::string_view placing = "run plan";
constexpr std::string_view running = "run";

// clang-format off
constexpr setting rows[]{
    {"ranks", 'n', "-np n num-proc ntasks", "N", kind::integer, "", placing, group::placement, use::common, "",
     "ranks in all; without it one for each GPU, or each core"},
    {"nnodes", 0, "nodes", "N", kind::integer, "", placing, group::placement, use::everywhere, "",
     "use the first N nodes of the allocation"},
    {"ranks-per-node", 0, "-ppn -npernode nproc-per-node ntasks-per-node tasks-per-node", "N", kind::integer, "", placing,
     group::placement, use::common, "", "ranks on each node"},
    {"slots-per-node", 0, "", "N", kind::integer, "", placing, group::placement, use::everywhere, "",
     "take N slots a node, whatever it has (to oversubscribe)"},
    {"ranks-per-gpu", 0, "", "N", kind::integer, "", placing, group::placement, use::common, "1",
     "let N ranks share each GPU"},
    {"map-by", 0, "-map-by rank-by", "WHAT", kind::text, "slot node", placing, group::placement, use::everywhere, "slot",
     "fill node after node (slot), or one rank a node in turn (node)"},
    {"bind-to", 0, "-bind-to", "WHAT", kind::text, "share core numa socket gpu none", placing, group::placement,
     use::common, "share", "share (of the cores near its GPU), core, numa, socket, gpu or none"},
    {"cpus-per-rank", 0, "-cpus-per-proc -cpus-per-rank cpus-per-task", "N", kind::integer, "", placing,
     group::placement, use::everywhere, "", "cores of each rank"},
    {"gpu-visibility", 0, "", "WHICH", kind::text, "all own own-first", placing, group::placement, use::common, "all",
     "GPUs a rank sees: all of the node's, only its own, or its own first"},
    {"smt", 0, "", "", kind::flag, "", placing, group::placement, use::everywhere, "true",
     "one hardware thread of each core only"},
    {"cpu-map", 0, "", "LIST:LIST…", kind::list, "", placing, group::placement, use::everywhere, "",
     "hardware threads by local rank: 24-31,56-63:16-23,48-55", 1, ':', check_cpus},
    {"gpu-map", 0, "", "GPU,GPU…", kind::list, "", placing, group::placement, use::everywhere, "",
     "GPUs by local rank, counted in PCI order: 3,2,1,0", 1, ',', check_index},
    {"reserved-cpus", 0, "", "LIST", kind::text, "", placing, group::placement, use::everywhere, "",
     "hardware threads that no rank gets: 0,8,16", 1, 0, check_cpus},

    {"hosts", 'H', "-host -hosts", "a:4,b:4", kind::text, "", "run plan hosts doctor", group::nodes, use::common, "",
     "these hosts and slots, also as node[1-4]:4"},
    {"hostfile", 'f', "-hostfile -machinefile -default-hostfile", "FILE", kind::text, "", "run plan hosts doctor",
     group::nodes, use::common, "", "a host a line: name, name:4, name slots=4, or one line for each slot"},
    {"scheduler", 0, "", "NAME", kind::text, "slurm pbs cobalt lsf flux hostfile local", "run plan hosts doctor",
     group::nodes, use::everywhere, "", "whose job this is; local: this node alone. Found out by itself"},
    {"site", 0, "", "NAME", kind::text, "", "run plan hosts doctor script", group::nodes, use::common, "",
     "whose settings to use: a site's name, or a site file (with a slash or .toml)"},
    {"network-interface", 0, "network-interfaces -iface", "NAME", kind::text, "", "run plan hosts doctor", group::nodes,
     use::everywhere, "", "by which nodes reach each other; without it the one that routes there"},

    {"engine", 0, "", "NAME", kind::text, "embedded srun mpirun mpiexec", "run doctor", group::engine, use::common, "",
     "what starts the ranks: embedded (one node), srun, mpirun, mpiexec"},
    {"engine-args", 0, "mpi-args", "WORDS", kind::list, "", "run doctor", group::engine, use::everywhere, "",
     "more words for the engine's command line, quoted as for a shell", 1, ' '},
    {"dry-run", 0, "", "", kind::flag, "", running, group::engine, use::common_option, "",
     "print the engine's command, start nothing"},
    {"print-env", 0, "", "RANK", kind::integer, "", running, group::engine, use::command_line, "",
     "print what this rank's environment would be, start nothing", 0},

    {"env", 'x', "", "NAME[=VALUE]", kind::list, "", running, group::ranks, use::common, "",
     "set a variable for the ranks (all of yours are passed on anyway)", 1, 0, check_assignment},
    {"wd", 0, "-wd -wdir chdir", "DIR", kind::text, "", running, group::ranks, use::everywhere, "", "the ranks' working directory"},
    {"allow-singletons", 0, "", "", kind::flag, "", running, group::ranks, use::everywhere, "",
     "ranks may use MPI alone; otherwise that is an error"},

    {"tag-output", 'l', "-tag-output -prepend-rank label", "", kind::flag, "", running, group::output, use::common, "",
     "put [host:rank] before each line"},
    {"timestamp-output", 0, "-timestamp-output prefix-output-with-timestamp", "", kind::flag, "", running, group::output,
     use::everywhere, "", "put the time before each line"},
    {"output-dir", 0, "output-filename", "DIR", kind::text, "", running, group::output, use::common, "",
     "keep each rank's output in DIR/rank.NN/stdout and stderr as well"},
    {"verbose", 'v', "-verbose", "", kind::flag, "", "run plan hosts", group::output, use::everywhere, "",
     "say what was chosen and why"},
    {"quiet", 'q', "-quiet", "", kind::flag, "", "run plan", group::output, use::everywhere, "", "no notes, only errors"},

    {"timeout", 0, "-timeout", "T", kind::time, "", running, group::time, use::common, "",
     "end the run after T (90, 90s, 5min, 1:30:00): exit code 124"},
    {"start-timeout", 0, "", "T", kind::time, "", running, group::time, use::everywhere, "",
     "all ranks must be there, and have met, after T: else 124"},
    {"idle-timeout", 0, "", "T", kind::time, "", running, group::time, use::everywhere, "",
     "some rank must write something every T: else 124"},
    {"grace", 0, "", "T", kind::time, "", running, group::time, use::everywhere, "5s",
     "from the request to end (SIGTERM) to SIGKILL"},
    {"heartbeat", 0, "", "T", kind::time, "", running, group::time, use::everywhere, "5s",
     "a node that is silent for so long, and 10 s, is lost"},
    {"signal-before-end", 0, "", "SIG@T", kind::text, "", running, group::time, use::common, "",
     "send the ranks a signal T before the job's time is up: USR1@120", 1, 0, check_early_signal},

    {"preflight", 0, "", "", kind::flag, "", running, group::checks, use::common, "",
     "look at every node before the ranks start"},
    {"exclude-bad-nodes", 0, "", "", kind::flag, "", running, group::checks, use::everywhere, "",
     "go on without nodes that fail preflight, while enough are left"},

    {"gpus", 0, "", "N", kind::integer, "", "script", group::job, use::common, "", "how many GPUs, and so how many ranks"},
    {"time", 't', "walltime", "T", kind::text, "", "script", group::job, use::common, "", "walltime: 1:30:00, 90min or 2h"},
    {"account", 'A', "", "NAME", kind::text, "", "script", group::job, use::common, "", "account or project to charge"},
    {"queue", 0, "partition qos", "NAME", kind::text, "", "script", group::job, use::common, "",
     "queue, partition or quality of service"},
    {"job-name", 0, "", "NAME", kind::text, "", "script", group::job, use::common, "muster", "what the job is called"},
    {"gpus-per-node", 0, "", "N", kind::integer, "", "script", group::job, use::common, "",
     "GPUs to use on each node, where not all or the site does not say"},
    {"cpus-per-gpu", 0, "", "N", kind::integer, "", "script", group::job, use::common, "",
     "hardware threads of each rank, where not an equal share of the node"},
    {"constraint", 0, "", "TEXT", kind::text, "", "script", group::job, use::common, "", "Slurm: instead of the site's own"},
    {"filesystems", 0, "", "TEXT", kind::text, "", "script", group::job, use::common, "",
     "PBS: instead of the site's own, such as home:eagle"},
    {"network-env", 0, "", "", kind::flag, "", "script", group::job, use::common, "true",
     "leave out the site's NCCL and network variables for several nodes"},
    {"limits", 0, "", "", kind::flag, "", "script", group::job, use::common, "true",
     "do not check queue and walltime against what the site file says"},
    {"muster", 0, "", "PATH", kind::text, "", "script", group::job, use::common_option, "",
     "the muster program as the job finds it; without it this one's path"},
    {"template", 0, "", "FILE", kind::text, "", "script", group::job, use::common, "",
     "a template of your own (mustache; start from share/muster/templates)"},

    {"topology", 0, "", "FILE.xml", kind::text, "", "plan", group::nodes, use::common_option, "",
     "each node is like the machine of this file, as written by lstopo FILE.xml"},
    {"gpus", 0, "", "SPEC", kind::text, "", "plan", group::nodes, use::common_option, "",
     "its GPUs: 4, numa:3,2,1,0, cpus:24-31/0-7 or none; without it those of the file"},
    {"all", 0, "", "", kind::flag, "", "config", group::general, use::common_option, "", "also those that nobody has set"},
    {"format", 0, "", "FORM", kind::text, "table json hostfile slurm pbs", "hosts", group::general, use::common_option, "table",
     "table, json, hostfile (for mpirun), slurm (one list), pbs (a node file)"},
    {"allocation", 0, "", "", kind::flag, "", "doctor", group::checks, use::common_option, "",
     "look at every node of the job, by a probe on each"},
    {"json", 0, "", "", kind::flag, "", "plan hosts doctor config", group::general, use::common_option, "", "for programs"},
    {"help-all", 0, "", "", kind::flag, "", "run plan hosts", group::general, use::command_line, "", "every option"},
    {"help", 'h', "", "", kind::flag, "", "run plan hosts doctor script config completion man", group::general,
     use::command_line, "", "this text"},
};
// clang-format on

}  // namespace

std::span<setting const> settings() noexcept {
    return rows;
}

}  // namespace muster
