#include <algorithm>
#include <iterator>
#include <vector>

#include "launch/help/help.hpp"
#include "launch/settings/parts.hpp"

namespace muster {

namespace {

constexpr command_row rows[]{
    {
        .name = "run",
        .summary = "start a program on every GPU (or core) of the allocation",
        .synopsis = "[-n N] [options] [--] program [args…]",
        .examples = "  muster run -- python3 train.py            one rank for each GPU (without GPUs: for each core)\n"
                    "  muster run -n 4 --tag-output -- ./a.out\n"
                    "  muster run -H a:4,b:4 -- ./a.out          on these hosts, outside of any job\n",
        .closing = "exit code: that of the first rank that failed (128+n for signal n); 124 time, 125 muster, 126/127 program, 2 "
                   "usage\n",
        .manual =
            "Starts one rank of the program for each GPU of the allocation (without GPUs: for each core). Each rank is bound to "
            "the "
            "cores next to its GPU and gets the variables that PyTorch, Horovod, JAX, TensorFlow, Open MPI and MPICH read.\n\n"
            "Options end at the first word that is not an option, or at --. The program and its arguments follow and are passed "
            "on "
            "unchanged.\n\n"
            "Without --max-restarts the first failure ends the run: every rank gets SIGTERM, and SIGKILL after --grace. muster "
            "names the rank that "
            "failed "
            "first and ends with its exit code.",
        .takes_program = true,
    },
    {
        .name = "plan",
        .summary = "show where each rank would go",
        .synopsis = "[-n N] [options]",
        .examples = "  muster plan                               one rank for each GPU (without GPUs: for each core)\n"
                    "  muster plan -n 4 --json\n"
                    "  muster plan --topology node.xml --site polaris\n",
        .manual = "Shows where muster run with the same options would place each rank, and why. Starts nothing.",
    },
    {
        .name = "hosts",
        .summary = "list the nodes of this job, also as a host file",
        .synopsis = "[options]",
        .examples = "  muster hosts                              hosts, GPUs, slots, hardware threads\n"
                    "  muster hosts --format hostfile >hosts     for mpirun --hostfile hosts ./a.out\n"
                    "  srun -w \"$(muster hosts --format slurm)\" ./a.out\n",
        .manual = "Prints the nodes that muster run would use: those of the job, or those that -H or --hostfile name. Starts "
                  "nothing. Standard output holds only the nodes, so that other programs can read it.\n\n"
                  "Inside a job, -H and --hostfile choose among its nodes; a host that is not in the job is an error. With "
                  "--scheduler hostfile muster ignores the job and uses the named hosts.",
    },
    {
        .name = "script",
        .summary = "print an sbatch or qsub script for a site",
        .synopsis = "--site SITE --gpus N|--ranks N --time T [options] -- program [args…]",
        .examples =
            "  muster script --site perlmutter --gpus 16 --time 1:30:00 --account m1234_g --queue regular -- python3 train.py "
            ">job.sh\n"
            "  muster script --site generic-slurm --gpus 4 --time 30min -- ./train | sbatch\n",
        .manual = "Prints a job script, for sbatch or qsub, that runs the program with one rank per GPU. First checks queue and "
                  "walltime against the site file.",
        .takes_program = true,
        .part = "jobs",
    },
    {
        .name = "submit",
        .summary = "check a job, write its script and submit it",
        .synopsis = "[--file FILE] [--site SITE --gpus N|--ranks N --time T …] -- program [args…]",
        .examples = "  muster submit --site perlmutter --gpus 16 --time 1:30:00 --account m1234_g -- python3 train.py\n"
                    "  muster submit                             the job in the table [job] of ./muster.toml\n"
                    "  muster submit --file job.toml --dry-run   print every action, do nothing\n"
                    "  muster submit … --each lr=0.1,0.01 -- python3 train.py --lr={lr}   a job for each value; muster show ID "
                    "compares them\n",
        .manual =
            "Creates the script that muster script would print, checks that its program and script file are on this machine and, "
            "with Slurm, that sbatch --test-only accepts it, and submits it with sbatch or qsub. Prints \"job ID\".\n\n"
            "The script is kept as muster-runs/ID.sh, and the run writes to muster-runs/ID unless --output-dir says otherwise.",
        .takes_program = true,
        .part = "jobs",
    },
    {
        .name = "alloc",
        .summary = "allocate nodes for muster run in a shell",
        .synopsis = "[--file FILE] [--site SITE --gpus N|--ranks N --time T …] [-- program [args…]]",
        .examples = "  muster alloc --site generic-slurm --gpus 4 --time 30min\n"
                    "  muster alloc --gpus 4 --time 30min --site polaris --queue debug --account A\n",
        .manual =
            "Starts salloc, or qsub -I, with the directives that muster script would write. In that shell muster run uses the "
            "allocated nodes.",
        .takes_program = true,
        .part = "jobs",
    },
    {
        .name = "jobs",
        .summary = "list your waiting and running jobs",
        .synopsis = "[--all] [--json]",
        .examples = "  muster jobs\n"
                    "  muster jobs --all                         what ran this week, and how it ended\n",
        .manual =
            "Asks squeue or qstat once, and lists your jobs: number, name, state, nodes, time used and its limit, and why a job "
            "waits. With --all also the jobs that muster has submitted in the last 7 days and that have ended, with their exit "
            "codes. If there is no scheduler to ask, or it does not answer, --all lists muster's own records of these jobs "
            "and exits with 1.",
        .part = "jobs",
    },
    {
        .name = "watch",
        .summary = "follow jobs to their end, with the output of the ranks",
        .synopsis = "ID… [--rank R] [--grep RE]",
        .examples = "  muster watch 12\n"
                    "  muster watch 12 --rank 0 --grep loss\n",
        .closing = "exit code: the job's own; 124 its time was up, 143 it was cancelled, 137 memory, 125 a node was lost\n",
        .manual =
            "Shows the state of each job, why it waits, and when it is expected to start; then the output of its script and its "
            "ranks, "
            "until the last of the jobs has ended. Asks the scheduler every 5 s, for all jobs at once. "
            "Ctrl-C ends muster watch, not the jobs.\n\n"
            "On a terminal the status line keeps the last line with muster-metric:, and the lines below it show how busy the "
            "job's GPUs are, if NVML reports that; elsewhere muster prints this once a minute.\n\n"
            "With several jobs, or an array, the exit code is the first that is not 0.",
        .takes_jobs = true,
        .part = "jobs",
    },
    {
        .name = "top",
        .summary = "show what the ranks of a run do now, and which hold it up",
        .synopsis = "[ID|FOLDER] [--once] [--json]",
        .examples = "  muster top 12\n"
                    "  muster top results                        a run with --output-dir results\n"
                    "  muster top                                your newest run on this node, or this job's\n"
                    "  muster top 12 --once >now.txt\n",
        .manual =
            "Shows for each rank its GPU, processor time, memory, the share of the time in which it waited for other ranks, and "
            "its state; below the table, what is odd and why. Reads samples.json in the run's folder, which the run writes every "
            "few seconds, and disturbs no rank.\n\n"
            "On a terminal it shows this until the run ends. Keys: q quits, h shows a line "
            "for each host or rank, n one host after the other, arrows and page keys scroll. Without a terminal, and with "
            "TERM=dumb, "
            "it prints the table once. NO_COLOR turns colors off.\n\n"
            "Columns: last is the share of the collectives for which the others waited for this rank last; silent the time since "
            "the rank wrote output. Narrow terminals show fewer columns.",
        .takes_jobs = true,
        .part = "jobs",
    },
    {
        .name = "logs",
        .summary = "print the output of a job's script and its ranks",
        .synopsis = "ID|FOLDER [--rank R] [--grep RE] [--follow]",
        .examples = "  muster logs 12 --rank 3\n"
                    "  muster logs results                       a run with --output-dir results\n",
        .manual =
            "Prints the files rank.NN/stdout and stderr of the job's run folders, each line with its rank; without a rank, what "
            "the job's script, muster and the scheduler wrote before, between and behind its runs.",
        .takes_jobs = true,
        .part = "jobs",
    },
    {
        .name = "show",
        .summary = "show one job: its request, placement, runs and files",
        .synopsis = "ID|FOLDER [--all] [--json]",
        .examples = "  muster show 12\n"
                    "  muster show results                       a run with --output-dir results\n",
        .manual =
            "Shows what the job requested and where it ran, from the scheduler, the record that muster submit keeps, and "
            "run.json in the folders of its runs. Of a sweep (submit --each) a table: the parameters, the last value of each "
            "muster-metric, and how each job ended; with --all each job too.",
        .takes_jobs = true,
        .part = "jobs",
    },
    {
        .name = "cancel",
        .summary = "end jobs",
        .synopsis = "ID…",
        .examples = "  muster cancel 12 13\n",
        .manual =
            "Ends jobs with scancel or qdel and prints the states that they had. Exits with 1 if one of them could not be ended.",
        .takes_jobs = true,
        .part = "jobs",
    },
    {
        .name = "rerun",
        .summary = "repeat a run from its folder",
        .synopsis = "FOLDER [--submit]",
        .examples = "  muster rerun muster-runs/12               here, or in the job that this shell is in\n"
                    "  muster rerun muster-runs/12 --submit      as a job\n",
        .manual = "Reads run.json in the folder of a run, says what differs now (the version, variables, missing files), and "
                  "starts the same program with the same settings in the same working directory.",
        .part = "jobs",
    },
    {
        .name = "init",
        .summary = "create a first folder: job file, training script, job script",
        .synopsis = "[FOLDER]",
        .examples = "  muster init first && cd first\n",
        .manual =
            "Writes muster.toml, with a table [job] that muster submit reads, train.py, and job.sh, the same job as a script for "
            "sbatch or qsub. Existing files stay as they are.",
        .part = "jobs",
    },
    {
        .name = "site",
        .summary = "list known sites; check a site file, or create one",
        .synopsis = "list | show NAME | check FILE | init [NAME] [options]",
        .examples = "  muster site list                          name, scheduler, nodes, GPUs, date of the facts\n"
                    "  muster site show polaris                  all known facts, their sources, and what is unknown\n"
                    "  muster site check ./my.toml               every fault of a site file\n"
                    "  muster site init                          write a site file for this cluster\n",
        .arguments = "list show check init",
        .manual = "list shows the sites of MUSTER_SITE_PATH, of ~/.config/muster/sites and those that came with muster.\n\n"
                  "show prints everything that a site file says, each part with its source and its date, and what is unknown.\n\n"
                  "check reads a site file and reports every fault in it, each with its line; it exits with 2 if it finds any. "
                  "muster config check does the same for settings files.\n\n"
                  "init asks sinfo and scontrol, or pbsnodes and qmgr, or without a scheduler NVML and hwloc, and writes a "
                  "site file to ~/.config/muster/sites, or to --output FILE. What it cannot find out becomes a comment. It never "
                  "overwrites a file.",
        .part = "jobs",
    },
    {
        .name = "doctor",
        .summary = "check what is installed, what is missing, and how to fix it",
        .synopsis = "[--allocation [-- program]] [options]",
        .examples = "  muster doctor                             this machine\n"
                    "  muster doctor --allocation                every node of the job\n"
                    "  muster doctor --allocation -- python3     also check that this program exists\n",
        .manual =
            "Examines everything on this machine that muster uses: the scheduler's job, the engines that can start ranks on its "
            "nodes, the GPUs, the limits. Prints what is missing and what to do. Exits with 1 if something is missing that "
            "muster needs.\n\n"
            "With --allocation a probe on each node examines what muster run --preflight examines: the program and the working "
            "directory, whether the nodes know each other's names and can connect to the node of rank 0, the space in /tmp and "
            "/dev/shm, the GPUs and whether they are idle and healthy, the clock, the version of muster. All nodes are examined "
            "in parallel. Exits with 1 if a node cannot run ranks.",
    },
    {
        .name = "config",
        .summary = "show every setting's value and its source",
        .synopsis = "show | path | check FILE [options]",
        .examples = "  muster config show                        what is set, and by what\n"
                    "  muster config show --all --json           every setting, for programs\n"
                    "  muster config path                        the files that settings are read from\n"
                    "  muster config check muster.toml           read a settings file and report the first error\n",
        .closing = "config show also takes every option of muster run that a file may set, and shows the resulting value\n",
        .arguments = "show path check",
        .manual = "show lists the settings that are not defaults, with the option, the variable or the line of the file that set "
                  "them.\n\n"
                  "path lists the files that settings are read from, strongest first.\n\n"
                  "check reads a settings file and reports the first error in it.",
    },
    {
        .name = "trace",
        .summary = "merge timelines, explain what failed ranks left",
        .synopsis = "merge FOLDER -o FILE | explain FOLDER",
        .examples = "  muster trace merge timelines -o all.json  open it in https://ui.perfetto.dev\n"
                    "  muster trace explain flight               where each rank was when the exchange failed\n",
        .arguments = "merge explain",
        .manual =
            "merge reads the timelines that ranks wrote to FOLDER (MUSTER_TIMELINE=FOLDER), moves them to rank 0's clock "
            "and writes one JSON file, for https://ui.perfetto.dev or chrome://tracing. A process keeps its track through "
            "all generations; a mark at the start of each later one says which ranks are gone.\n\n"
            "explain reads the flight recorders that ranks wrote to FOLDER (MUSTER_FLIGHT_RECORDER=FOLDER), and shows where "
            "each rank was when the exchange failed.",
    },
    {
        .name = "completion",
        .summary = "print completion for a shell",
        .synopsis = "bash | zsh | fish",
        .examples = "  source <(muster completion bash)          in ~/.bashrc\n"
                    "  muster completion zsh >~/.zfunc/_muster   a folder of $fpath\n"
                    "  muster completion fish >~/.config/fish/completions/muster.fish\n",
        .arguments = "bash zsh fish",
        .manual = "Prints a script that lets a shell complete muster's commands, options, their values and the names of sites.",
    },
    {.name = "stage", .summary = "convert, verify and inspect datasets (muster-stage)", .is_program = true, .part = "data"},
    {.name = "bench", .summary = "train, measure scaling, report (muster-bench)", .is_program = true, .part = "bench"},
    {.name = "shim", .summary = "what muster starts for each rank on other nodes", .hidden = true},
    {.name = "remote", .summary = "what muster starts as the engine of that name", .hidden = true},
    {.name = "agent", .summary = "what the engine remote starts on each host", .hidden = true},
    {.name = "keeper", .summary = "what holds the states of ranks on each host", .hidden = true, .part = "keep"},
    {.name = "probe", .summary = "what inspects each node before ranks start there", .hidden = true, .part = "preflight"},
    {.name = "tmrsh", .summary = "what engines call in a PBS job instead of ssh", .hidden = true},
    {.name = "fluxrsh", .summary = "what engines call in a Flux job in the place of ssh", .hidden = true},
    {.name = "manual", .summary = "the man page of muster or of a command in Markdown, for the build", .hidden = true},
};

}  // namespace

std::span<command_row const> commands_of_all_parts() noexcept {
    return rows;
}

std::span<command_row const> commands() {
    static auto const built = [] {
        std::vector<command_row> all;
        std::ranges::copy_if(rows, std::back_inserter(all), [](auto const& row) { return has_part(row.part); });
        return all;
    }();
    return built;
}

command_row const* find_command(std::string_view name) {
    for (auto const& row : commands())
        if (row.name == name) return &row;
    return nullptr;
}

}  // namespace muster
