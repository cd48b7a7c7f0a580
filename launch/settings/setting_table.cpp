// Rows of the table of settings.
#include "launch/settings/setting.hpp"
#include "launch/settings/setting_values.hpp"

namespace muster {

namespace {

using kind = setting_kind;
using group = setting_group;
using use = setting_use;

constexpr std::string_view placing = "run plan";
constexpr std::string_view running = "run";
constexpr std::string_view scripting = "script";

// clang-format off
constexpr setting rows[]{
    {"ranks", 'n', "-np n num-proc ntasks", "N", kind::integer, "", placing, group::placement, use::common, "",
     "number of ranks; default: one for each GPU (without GPUs: for each core)"},
    {"nnodes", 0, "nodes", "N", kind::integer, "", placing, group::placement, use::everywhere, "",
     "use the first N nodes of the allocation"},
    {"ranks-per-node", 0, "-ppn -npernode nproc-per-node ntasks-per-node tasks-per-node", "N", kind::integer, "", placing,
     group::placement, use::common, "", "ranks on each node"},
    {"slots-per-node", 0, "", "N", kind::integer, "", placing, group::placement, use::everywhere, "",
     "start up to N ranks on each node, whatever it has (to oversubscribe)"},
    {"ranks-per-gpu", 0, "", "N", kind::integer, "", placing, group::placement, use::common, "1",
     "let N ranks share each GPU"},
    {"map-by", 0, "-map-by rank-by", "WHAT", kind::text, "slot node", placing, group::placement, use::everywhere, "slot",
     "slot: fill one node after the other; node: one rank on each node in turn"},
    {"bind-to", 0, "-bind-to", "WHAT", kind::text, "share core numa socket gpu none", placing, group::placement,
     use::common, "share", "cores of a rank: share (of those near its GPU), core, numa, socket, gpu or none"},
    {"cpus-per-rank", 0, "-cpus-per-proc -cpus-per-rank cpus-per-task", "N", kind::integer, "", placing,
     group::placement, use::everywhere, "", "number of cores of each rank"},
    {"gpu-visibility", 0, "", "WHICH", kind::text, "all own own-first", placing, group::placement, use::common, "all",
     "GPUs that a rank sees: all of the node, only its own, or its own first"},
    {"smt", 0, "", "", kind::flag, "", placing, group::placement, use::everywhere, "true",
     "use one hardware thread of each core only"},
    {"cpu-map", 0, "", "LIST:LIST…", kind::list, "", placing, group::placement, use::everywhere, "",
     "hardware threads by local rank: 24-31,56-63:16-23,48-55", 1, ':', check_cpus},
    {"gpu-map", 0, "", "GPU,GPU…", kind::list, "", placing, group::placement, use::everywhere, "",
     "GPUs by local rank, counted in PCI order: 3,2,1,0", 1, ',', check_index},
    {"reserved-cpus", 0, "", "LIST", kind::text, "", placing, group::placement, use::everywhere, "",
     "hardware threads that no rank gets: 0,8,16", 1, 0, check_cpus},

    {"hosts", 'H', "-host -hosts", "a:4,b:4", kind::text, "", "run plan hosts doctor", group::nodes, use::common, "",
     "run on these hosts, with these slots; also as node[1-4]:4"},
    {"hostfile", 'f', "-hostfile -machinefile -default-hostfile", "FILE", kind::text, "", "run plan hosts doctor",
     group::nodes, use::common, "", "file of hosts, one in each line: name, name:4 or name slots=4"},
    {"scheduler", 0, "", "NAME", kind::text, "slurm pbs cobalt lsf flux hostfile local", "run plan hosts doctor",
     group::nodes, use::everywhere, "", "scheduler of this job; default: the one that the environment shows; local: this node alone"},
    {"site", 0, "", "NAME", kind::text, "", "run plan hosts doctor script", group::nodes, use::common, "",
     "take the settings of this site: its name, or a site file (with a slash or .toml)"},
    {"network-interface", 0, "network-interfaces -iface", "NAME", kind::text, "", "run plan hosts doctor", group::nodes,
     use::everywhere, "", "interface by which nodes reach each other; default: the one that routes there"},

    {"engine", 0, "", "NAME", kind::text, "embedded srun mpirun mpiexec", "run doctor", group::engine, use::common, "",
     "program that starts the ranks: embedded (one node), srun, mpirun, mpiexec"},
    {"engine-args", 0, "mpi-args", "WORDS", kind::list, "", "run doctor", group::engine, use::everywhere, "",
     "words to add to the engine's command line, quoted as for a shell", 1, ' '},
    {"pass-key", 0, "", "WAY", kind::text, "auto file environment", "run doctor", group::engine, use::everywhere, "auto",
     "how nodes get the run's key: file (in the home, if they share it), environment (by the engine), or auto"},
    {"nested", 0, "", "", kind::flag, "", running, group::engine, use::everywhere, "",
     "start ranks also as one of several tasks (srun -n 2 muster run), where each would start all of them"},
    {"dry-run", 0, "", "", kind::flag, "", running, group::engine, use::common_option, "",
     "print the engine's command and start nothing"},
    {"print-env", 0, "", "RANK", kind::integer, "", running, group::engine, use::command_line, "",
     "print the environment that this rank would have and start nothing", 0},

    {"env", 'x', "", "NAME[=VALUE]", kind::list, "", "run script", group::ranks, use::common, "",
     "set a variable for the ranks (all of yours are passed on in any case)", 1, 0, check_assignment},
    {"env-exclude", 0, "", "NAME,NAME…", kind::list, "", running, group::ranks, use::everywhere, "",
     "do not pass on these variables to ranks that an engine starts: AWS_*,*_TOKEN", 1, ','},
    {"wd", 0, "-wd -wdir chdir", "DIR", kind::text, "", running, group::ranks, use::everywhere, "", "working directory of the ranks"},
    {"allow-singletons", 0, "", "", kind::flag, "", running, group::ranks, use::everywhere, "",
     "allow ranks that use MPI as worlds of one rank; otherwise that is an error"},

    {"tag-output", 'l', "-tag-output -prepend-rank label", "", kind::flag, "", running, group::output, use::common, "",
     "put [host:rank] before each line"},
    {"timestamp-output", 0, "-timestamp-output prefix-output-with-timestamp", "", kind::flag, "", running, group::output,
     use::everywhere, "", "put the time before each line"},
    {"output-dir", 0, "output-filename", "DIR", kind::text, "", running, group::output, use::common, "",
     "write the output of each rank to DIR/rank.NN/stdout and stderr as well; %j in DIR: the job's number"},
    {"verbose", 'v', "-verbose", "", kind::flag, "", "run plan hosts doctor", group::output, use::everywhere, "",
     "print what was chosen and why"},
    {"quiet", 'q', "-quiet", "", kind::flag, "", "run plan", group::output, use::everywhere, "", "print no notes, only errors"},

    {"timeout", 0, "-timeout", "T", kind::time, "", running, group::time, use::common, "",
     "end the run after T (90, 90s, 5min, 1:30:00) with exit code 124"},
    {"start-timeout", 0, "", "T", kind::time, "", running, group::time, use::everywhere, "",
     "end the run with 124 if, after T, ranks are missing or only some have met (in MPI, or at MASTER_PORT)"},
    {"idle-timeout", 0, "", "T", kind::time, "", running, group::time, use::everywhere, "",
     "end the run with 124 if no rank has written anything for T"},
    {"on-hang", 0, "", "CMD", kind::text, "", running, group::time, use::command_line, "",
     "before a time limit ends the run, run CMD about each rank on its node: 'py-spy dump --pid {pid}'"},
    {"grace", 0, "", "T", kind::time, "", running, group::time, use::everywhere, "5s",
     "time from SIGTERM to SIGKILL when the run ends"},
    {"heartbeat", 0, "", "T", kind::time, "", running, group::time, use::everywhere, "5s",
     "end the run if a node does not answer for T and 10 s more"},
    {"signal-before-end", 0, "", "SIG@T", kind::text, "", "run script", group::time, use::common, "",
     "send the ranks a signal, T before the job's time limit: USR1@120", 1, 0, check_early_signal},
    {"success-file", 0, "", "FILE", kind::text, "", running, group::time, use::command_line, "",
     "make FILE when the run ends with 0"},

    {"preflight", 0, "", "", kind::flag, "", running, group::checks, use::common, "",
     "examine every node before the ranks start"},
    {"exclude-bad-nodes", 0, "", "", kind::flag, "", running, group::checks, use::everywhere, "",
     "leave out nodes that fail preflight, if enough are left"},

    {"gpus", 0, "", "N", kind::integer, "", scripting, group::job, use::common, "", "number of GPUs, and of ranks"},
    {"time", 't', "walltime", "T", kind::text, "", scripting, group::job, use::common, "", "walltime: 1:30:00, 90min or 2h"},
    {"account", 'A', "", "NAME", kind::text, "", scripting, group::job, use::common, "", "account or project to charge"},
    {"queue", 0, "partition qos", "NAME", kind::text, "", scripting, group::job, use::common, "",
     "queue, partition or quality of service"},
    {"job-name", 0, "", "NAME", kind::text, "", scripting, group::job, use::common, "muster", "name of the job"},
    {"gpus-per-node", 0, "", "N", kind::integer, "", scripting, group::job, use::common, "",
     "GPUs to use on each node; default: all, as the site file says"},
    {"cpus-per-gpu", 0, "", "N", kind::integer, "", scripting, group::job, use::common, "",
     "hardware threads of each rank; default: an equal share of the node"},
    {"constraint", 0, "", "TEXT", kind::text, "", scripting, group::job, use::common, "", "constraint of a Slurm job, in place of the site's"},
    {"filesystems", 0, "", "TEXT", kind::text, "", scripting, group::job, use::common, "",
     "file systems of a PBS job, in place of the site's: home:eagle"},
    {"network-env", 0, "", "", kind::flag, "", scripting, group::job, use::common, "true",
     "leave out the site's NCCL and network variables for several nodes"},
    {"limits", 0, "", "", kind::flag, "", scripting, group::job, use::common, "true",
     "do not check queue and walltime against what the site file says"},
    {"module", 0, "", "NAME", kind::list, "", scripting, group::job, use::everywhere, "", "load this environment module first; may be repeated"},
    {"setup", 0, "", "LINE", kind::list, "", scripting, group::job, use::everywhere, "", "shell line to run first, as it is; may be repeated"},
    {"venv", 0, "", "DIR", kind::text, "", scripting, group::job, use::everywhere, "", "activate this Python environment first"},
    {"conda", 0, "", "NAME", kind::text, "", scripting, group::job, use::everywhere, "", "activate this conda environment first: its name or folder"},
    {"container", 0, "", "IMAGE", kind::text, "", scripting, group::job, use::everywhere, "", "run the program in this container image"},
    {"container-runtime", 0, "", "NAME", kind::text, "apptainer singularity pyxis", scripting, group::job, use::everywhere, "",
     "what opens it: apptainer or singularity (exec), or srun's plugin pyxis; default: the site's, else apptainer"},
    {"container-args", 0, "", "WORDS", kind::list, "", scripting, group::job, use::everywhere, "",
     "words for it: '--nv --bind /data', or '--container-mounts=/data' for pyxis; default: the site's, else --nv", 1, ' '},
    {"array", 0, "", "LIST", kind::text, "", scripting, group::job, use::everywhere, "", "make it an array of jobs: 0-9, or 0-9%2 for two at a time"},
    {"sweep", 0, "", "N,N…", kind::list, "", scripting, group::job, use::everywhere, "",
     "make it an array with one job for each of these numbers of ranks: 1,2,4,8", 1, ',', check_index},
    {"after", 0, "", "[KIND:]ID,ID…", kind::text, "", scripting, group::job, use::command_line, "",
     "wait for these jobs; KIND says how they must end: ok (the default), any or notok"},
    {"chain", 0, "", "N", kind::integer, "", scripting, group::job, use::everywhere, "",
     "N jobs that follow one another, each going on from the last checkpoint, until the program ends with 0", 2},
    {"requeue", 0, "", "", kind::flag, "", scripting, group::job, use::everywhere, "", "let the scheduler start the job again after a preemption"},
    {"stage-in", 0, "", "SRC:DST", kind::list, "", scripting, group::job, use::everywhere, "",
     "copy SRC to the folder DST of each node before the run; may be repeated"},
    {"artifacts", 0, "", "DIR", kind::text, "", scripting, group::job, use::everywhere, "",
     "copy what the program writes to $MUSTER_SYNC_DIR to DIR: every so often, before the time limit and at the end; %j in DIR: the job's number"},
    {"artifacts-every", 0, "", "T", kind::time, "", scripting, group::job, use::everywhere, "10min", "how often"},
    {"muster", 0, "", "PATH", kind::text, "", scripting, group::job, use::common_option, "",
     "path of muster in the job; default: the path of this program"},
    {"template", 0, "", "FILE", kind::text, "", scripting, group::job, use::common, "",
     "your own template (mustache): a file, or its name in a folder of site files"},

    {"topology", 0, "", "FILE.xml", kind::text, "", "plan", group::nodes, use::common_option, "",
     "take each node to be like the machine of this file, which lstopo wrote, or of this name in share/muster/topologies"},
    {"gpus", 0, "", "SPEC", kind::text, "", "plan", group::nodes, use::common_option, "",
     "of --topology: the machine's GPUs, 4, numa:3,2,1,0, cpus:24-31/0-7 or none; of --site: how many to plan for"},
    {"all", 0, "", "", kind::flag, "", "config", group::general, use::common_option, "", "show also the settings that nobody has set"},
    {"format", 0, "", "FORM", kind::text, "table json hostfile slurm pbs", "hosts", group::general, use::common_option, "table",
     "table, json, hostfile (for mpirun), slurm (a list), pbs (a node file)"},
    {"allocation", 0, "", "", kind::flag, "", "doctor", group::checks, use::common_option, "",
     "examine every node of the job, by a probe on each"},
    {"output", 'o', "", "FILE", kind::text, "", "site", group::general, use::common_option, "",
     "init: write this file; -: print it; default: ~/.config/muster/sites/NAME.toml"},
    {"json", 0, "", "", kind::flag, "", "plan hosts doctor config site", group::general, use::common_option, "", "print JSON, for programs"},
    {"help-all", 0, "", "", kind::flag, "", "run plan hosts script", group::general, use::command_line, "", "print every option"},
    {"help", 'h', "", "", kind::flag, "", "run plan hosts doctor script site config completion man", group::general,
     use::command_line, "", "print this text"},
};
// clang-format on

}  // namespace

std::span<setting const> settings() noexcept {
    return rows;
}

}  // namespace muster
