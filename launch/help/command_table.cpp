#include "launch/help/command_table.hpp"

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
        .closing =
            "exit code: of the rank that failed first (128+n for signal n); 124 time, 125 muster, 126/127 program, 2 usage\n",
        .manual =
            "Starts one rank of the program for each GPU of the allocation (without GPUs: for each core). Each rank is bound to "
            "the "
            "cores next to its GPU and gets the variables that PyTorch, Horovod, JAX, TensorFlow, Open MPI and MPICH read.\n\n"
            "Options end at the first word that is no option, or at --. The program and its arguments follow and are passed on "
            "unchanged.\n\n"
            "The first failure ends the run: every rank gets SIGTERM, and SIGKILL after --grace. muster names the rank that "
            "failed "
            "first and ends with its exit code.",
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
        .summary = "the nodes of this job, also as a host file or list",
        .synopsis = "[options]",
        .examples = "  muster hosts                              hosts, GPUs, slots, hardware threads\n"
                    "  muster hosts --format hostfile >hosts     for mpirun --hostfile hosts ./a.out\n"
                    "  srun -w \"$(muster hosts --format slurm)\" ./a.out\n",
        .manual = "Prints the nodes that muster run would use: those of the job, or those that -H or --hostfile name. Starts "
                  "nothing. Standard output holds the nodes alone, so that other programs can read it.\n\n"
                  "Inside a job, -H and --hostfile choose among its nodes; a host that is not in the job is an error. With "
                  "--scheduler hostfile muster ignores the job and takes the hosts as they are named.",
    },
    {
        .name = "script",
        .summary = "print an sbatch or qsub script for a site",
        .synopsis = "--site SITE --gpus N --time T [options] -- program [args…]",
        .examples =
            "  muster script --site perlmutter --gpus 16 --time 1:30:00 --account m1234_g --queue regular -- python3 train.py "
            ">job.sh\n"
            "  muster script --site generic-slurm --gpus 4 --time 30min -- ./train | sbatch\n",
        .manual = "Prints the job script, for sbatch or qsub, that runs the program with one rank a GPU. Queue and walltime are "
                  "checked against the site file before anything is printed.",
    },
    {
        .name = "submit",
        .summary = "check a job, write its script and submit it",
        .synopsis = "[--file FILE] [--site SITE --gpus N --time T …] -- program [args…]",
        .examples = "  muster submit --site perlmutter --gpus 16 --time 1:30:00 --account m1234_g -- python3 train.py\n"
                    "  muster submit                             the job in the table [job] of ./muster.toml\n"
                    "  muster submit --file job.toml --dry-run   print every action and do none\n",
        .manual =
            "Makes the script that muster script would print, checks that its program and script file are on this machine and, "
            "where there is Slurm, that sbatch --test-only takes it, and submits it by sbatch or qsub. Prints \"job ID\".\n\n"
            "The script is kept as muster-runs/ID.sh, and the run writes to muster-runs/ID unless --output-dir says otherwise.",
    },
    {
        .name = "alloc",
        .summary = "nodes for a shell, asked for as for a job",
        .synopsis = "[--file FILE] [--site SITE --gpus N --time T …] [-- program [args…]]",
        .examples = "  muster alloc --site generic-slurm --gpus 4 --time 30min\n"
                    "  muster alloc --gpus 4 --time 30min --site polaris --queue debug --account A\n",
        .manual =
            "Starts salloc, or qsub -I, with the directives that muster script would write. In the shell that results muster run "
            "uses the nodes that were given.",
    },
    {
        .name = "jobs",
        .summary = "your jobs that wait or run",
        .synopsis = "[--json]",
        .examples = "  muster jobs\n",
        .manual =
            "Asks squeue or qstat once, and lists your jobs: number, name, state, nodes, time used and its limit, and why a job "
            "waits, in words.",
    },
    {
        .name = "watch",
        .summary = "follow jobs to their end, with what the ranks write",
        .synopsis = "ID… [--rank R] [--grep RE]",
        .examples = "  muster watch 12\n"
                    "  muster watch 12 --rank 0 --grep loss\n",
        .closing = "exit code: the job's own; 124 its time was up, 143 it was cancelled, 137 memory, 125 a node was lost\n",
        .manual =
            "Tells the state of each job, why it waits, in words, and when it is expected to start; then the lines that its "
            "ranks "
            "write, until the last of the jobs has ended. The scheduler is asked once in 5 seconds, however many jobs there are. "
            "Ctrl-C ends muster watch, not the jobs.\n\n"
            "A line that holds muster-metric: is kept in the line of status on a terminal. Below it stands how the job's GPUs "
            "are "
            "used, where NVML tells; elsewhere that is printed once a minute.\n\n"
            "Of several jobs, or of an array, the exit code is the first that is not 0.",
    },
    {
        .name = "logs",
        .summary = "what the ranks of a job have written",
        .synopsis = "ID [--rank R] [--grep RE] [--follow]",
        .examples = "  muster logs 12 --rank 3\n",
        .manual =
            "Prints the files rank.NN/stdout and stderr of the job's run folders, each line with its rank. Asks no scheduler.",
    },
    {
        .name = "show",
        .summary = "one job: asked for, placed, run, and its files",
        .synopsis = "ID [--json]",
        .examples = "  muster show 12\n",
        .manual =
            "Shows what was asked for and where it ran, from the scheduler, from the record that muster submit keeps, and from "
            "run.json in the folders of its runs.",
    },
    {
        .name = "cancel",
        .summary = "end jobs",
        .synopsis = "ID…",
        .examples = "  muster cancel 12 13\n",
        .manual = "Ends jobs by scancel or qdel and says what their states were. Ends with 1 if one of them could not be ended.",
    },
    {
        .name = "rerun",
        .summary = "run again what a run folder holds the record of",
        .synopsis = "FOLDER [--submit]",
        .examples = "  muster rerun muster-runs/12               here, or in the job that this shell is in\n"
                    "  muster rerun muster-runs/12 --submit      as a job\n",
        .manual =
            "Reads run.json in the folder of a run, says what differs now (the version, variables, files that are missing), and "
            "starts the same program with the same settings in the same working directory.",
    },
    {
        .name = "init",
        .summary = "a folder to start from: job file, training script, job script",
        .synopsis = "[FOLDER]",
        .examples = "  muster init first && cd first\n",
        .manual =
            "Writes muster.toml, with a table [job] that muster submit reads, train.py, and job.sh, the same job as a script for "
            "sbatch or qsub. Files that are there stay as they are.",
    },
    {
        .name = "site",
        .summary = "the sites that muster knows; check a site file, or begin one",
        .synopsis = "list | show NAME | check FILE | init [NAME] [options]",
        .examples = "  muster site list                          name, scheduler, nodes, GPUs, date of the facts\n"
                    "  muster site show polaris                  all that is known, from where, and what is not\n"
                    "  muster site check ./my.toml               every fault of a site file\n"
                    "  muster site init                          write a site file for this cluster\n",
        .arguments = "list show check init",
        .manual =
            "list shows the sites of MUSTER_SITE_PATH, of ~/.config/muster/sites and those that came with muster.\n\n"
            "show prints everything that a site file says, each part with its source and its date, and names what is not "
            "known.\n\n"
            "check reads a site file and reports every fault in it, each with its line; it ends with 2 if there is one. "
            "muster config check does the same for settings files.\n\n"
            "init asks sinfo and scontrol, or pbsnodes and qmgr, and where there is no scheduler NVML and hwloc, and writes a "
            "site file to ~/.config/muster/sites, or to --output FILE. What is not told becomes a comment. A file that is "
            "there is not overwritten.",
    },
    {
        .name = "doctor",
        .summary = "what is here, what is missing, and what to do about it",
        .synopsis = "[--allocation [-- program]] [options]",
        .examples = "  muster doctor                             this machine\n"
                    "  muster doctor --allocation                every node of the job\n"
                    "  muster doctor --allocation -- python3     and whether this program is there\n",
        .manual =
            "Examines everything on this machine that muster uses: the scheduler's job, the engines that can start ranks on its "
            "nodes, the GPUs, the limits. Prints what is missing and what to do. Ends with 1 if something is missing that "
            "muster needs.\n\n"
            "With --allocation a probe on each node examines what muster run --preflight examines: the program and the working "
            "directory, whether the nodes know each other's names and can connect to the node of rank 0, the space in /tmp and "
            "/dev/shm, the GPUs and whether they are idle and well, the clock, the version of muster. All nodes are examined at "
            "the same time. Ends with 1 if a node is unfit for ranks.",
    },
    {
        .name = "config",
        .summary = "every setting's value and where it came from",
        .synopsis = "show | path | check FILE [options]",
        .examples = "  muster config show                        what is set, and where\n"
                    "  muster config show --all --json           every setting, for programs\n"
                    "  muster config path                        the files that settings are read from\n"
                    "  muster config check muster.toml           read a settings file and report the first error\n",
        .closing = "config show also takes every option of muster run that a file may set, and shows the value that results\n",
        .arguments = "show path check",
        .manual = "show lists the settings that somebody has set, with the option, the variable or the line of the file that set "
                  "them.\n\n"
                  "path lists the files that settings are read from, the strongest first.\n\n"
                  "check reads a settings file and reports the first error in it.",
    },
    {
        .name = "completion",
        .summary = "completion for a shell",
        .synopsis = "bash | zsh | fish",
        .examples = "  source <(muster completion bash)          in ~/.bashrc\n"
                    "  muster completion zsh >~/.zfunc/_muster   a folder of $fpath\n"
                    "  muster completion fish >~/.config/fish/completions/muster.fish\n",
        .arguments = "bash zsh fish",
        .manual = "Prints a script that lets a shell complete muster's commands, options, their values and the names of sites.",
    },
    {.name = "stage", .summary = "convert, verify and inspect datasets (muster-stage)"},
    {.name = "bench", .summary = "train, measure scaling, report (muster-bench)"},
    {.name = "trace", .summary = "merge timelines, explain what failed ranks left (muster-trace)"},
    {.name = "shim", .summary = "what muster starts beside each rank on other nodes", .hidden = true},
    {.name = "remote", .summary = "what muster starts as the engine of that name", .hidden = true},
    {.name = "agent", .summary = "what the engine remote starts on each host", .hidden = true},
    {.name = "tmrsh", .summary = "what engines call in a PBS job in the place of ssh", .hidden = true},
    {.name = "fluxrsh", .summary = "what engines call in a Flux job in the place of ssh", .hidden = true},
    {.name = "manual", .summary = "the man page of muster or of a command in Markdown, for the build", .hidden = true},
};

}  // namespace

std::span<command_row const> commands() noexcept {
    return rows;
}

command_row const* find_command(std::string_view name) noexcept {
    for (auto const& row : commands())
        if (row.name == name) return &row;
    return nullptr;
}

}  // namespace muster
