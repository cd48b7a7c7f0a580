#include "launch/help/command_table.hpp"

#include "launch/commands/completion_command.hpp"
#include "launch/commands/config_command.hpp"
#include "launch/commands/doctor_command.hpp"
#include "launch/commands/hosts_command.hpp"
#include "launch/commands/man_command.hpp"
#include "launch/commands/plan_command.hpp"
#include "launch/commands/run_command.hpp"
#include "launch/commands/script_command.hpp"
#include "launch/commands/shim_command.hpp"
#include "launch/engine/pbs_remote.hpp"

namespace muster {

namespace {

constexpr command_row rows[]{
    {"run", "start a program on every GPU (or core) of the allocation", "[-n N] [options] [--] program [args…]",
     "  muster run -- python train.py             one rank for each GPU (without GPUs: for each core)\n"
     "  muster run -n 4 --tag-output -- ./a.out\n"
     "  muster run -H a:4,b:4 -- ./a.out          on these hosts, outside of any job\n",
     "", "exit code: of the rank that failed first (128+n for signal n); 124 time, 125 muster, 126/127 program, 2 usage\n",
     "Starts one rank of the program for each GPU of the allocation that it finds itself in (or for each core where there "
     "are no GPUs), each bound to the cores next to its GPU, with everything set that PyTorch, Horovod, JAX, TensorFlow, "
     "Open MPI and MPICH read from their environment.\n\n"
     "Options end at the first word that is none, or at --; what follows is the program and its arguments, "
     "untouched.\n\n"
     "The first failure ends the run: SIGTERM to every rank, after --grace SIGKILL. The rank that failed first is named, "
     "and its exit code is muster's.",
     run_command},
    {"plan", "show where each rank would go", "[-n N] [options]",
     "  muster plan                               one rank for each GPU (without GPUs: for each core)\n"
     "  muster plan -n 4 --json\n"
     "  muster plan --topology node.xml --site polaris\n",
     "", "", "Shows where muster run with the same options would place each rank, and why. Starts nothing.", plan_command},
    {"hosts", "the nodes of this job, also as a host file or list", "[options]",
     "  muster hosts                              hosts, GPUs, slots, hardware threads\n"
     "  muster hosts --format hostfile >hosts     for mpirun --hostfile hosts ./a.out\n"
     "  srun -w \"$(muster hosts --format slurm)\" ./a.out\n",
     "", "",
     "Prints the nodes that muster run would use, as the scheduler gave them or as -H or --hostfile name them. Starts "
     "nothing. Standard output holds nothing else, so that other programs can read it.\n\n"
     "Inside a job, -H and --hostfile choose among its nodes; a host that is not in the job is an error. --scheduler "
     "hostfile takes the hosts as they are named, whatever job this is.",
     hosts_command},
    {"script", "print an sbatch or qsub script for a site", "--site SITE --gpus N --time T [options] -- program [args…]",
     "  muster script --site perlmutter --gpus 16 --time 1:30:00 --account m1234_g --queue regular -- python train.py >job.sh\n"
     "  muster script --site generic-slurm --gpus 4 --time 30min -- ./train | sbatch\n",
     "", "",
     "Prints the job script that runs the program with one rank a GPU, for sbatch or qsub. Queue and walltime are checked "
     "against what the site file says before anything is printed.",
     script_command},
    {"doctor", "what is here, what is missing, and what to do about it", "[--allocation [-- program]] [options]",
     "  muster doctor                             this machine\n"
     "  muster doctor --allocation                every node of the job\n"
     "  muster doctor --allocation -- python      and whether this program is there\n",
     "", "",
     "Looks at this machine and tells, for everything that muster uses, whether it is there and what to do if it is not: the "
     "scheduler's job, which engines can start ranks on its nodes, and why others cannot. Ends 1 if something is missing that "
     "muster cannot do without.\n\n"
     "With --allocation a probe on each node looks, all at the same time and within seconds, at what muster run --preflight "
     "looks "
     "at: the program and the working directory, whether the nodes know each other's names and can connect to where rank 0 would "
     "be, the space in /tmp and /dev/shm, the GPUs, whether they are idle and well, the clock, the version of muster. Ends 1 if "
     "a "
     "node is unfit for ranks.",
     doctor_command},
    {"config", "every setting's value and where it came from", "show | path | check FILE [options]",
     "  muster config show                        what is set, and where\n"
     "  muster config show --all --json           every setting, for programs\n"
     "  muster config path                        the files that are looked for\n"
     "  muster config check muster.toml           is this file right?\n",
     "show path check", "config show also takes every option of muster run that a file may set, and shows what would then hold\n",
     "show lists the settings that somebody has set, with the option, the variable or the line of the file that "
     "did.\n\n"
     "path lists the files that settings are read from, the strongest first.\n\n"
     "check reads a settings file and says what is wrong with it.",
     config_command},
    {"completion", "completion for a shell", "bash | zsh | fish",
     "  source <(muster completion bash)          in ~/.bashrc\n"
     "  muster completion zsh >~/.zfunc/_muster   a folder of $fpath\n"
     "  muster completion fish >~/.config/fish/completions/muster.fish\n",
     "bash zsh fish", "",
     "Prints a script that lets a shell complete muster's commands, options, their values and the names of sites.",
     completion_command},
    {"stage", "convert, verify and inspect datasets (muster-stage)", "", "", "convert verify info", "", ""},
    {"bench", "train, measure scaling, report (muster-bench)", "", "",
     "train scale compare collectives exchange wire launch loader gpu-kernels report", "", ""},
    {"trace", "merge timelines, explain what failed ranks left (muster-trace)", "", "", "merge explain", "", ""},
    {"shim", "what muster starts beside each rank on other nodes", "", "", "", "", "", shim_command, true},
    {"tmrsh", "what engines call in a PBS job in the place of ssh", "", "", "", "", "", tmrsh_command, true},
    {"man", "a man page, as man reads it", "[COMMAND]", "  muster man run | man -l -\n", "", "",
     "Prints the man page of muster or of a command.", man_command, true},
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
