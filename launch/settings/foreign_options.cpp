#include "launch/settings/foreign_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace {

/// Says how muster treats an option of another tool.
enum class fate {
    means,      ///< `text` is muster's option for it
    noted,      ///< it changes nothing: `text` says why
    variable,   ///< its value becomes that of the ranks' variable `text`
    mebibytes,  ///< the same, in bytes
    exports,    ///< its NAME=VALUE,… become variables of the ranks in addition to all others; refused without ALL
    refused,    ///< muster works differently: `text` says what to do
    directive,  ///< only for a job script: `text` is muster's option for such a line
};

struct foreign {
    std::string_view names;  ///< as in setting::aliases
    std::string_view tool;
    fate what;
    std::string_view text;
    std::size_t values = 0;      ///< the number of words that follow it
    std::string_view only = "";  ///< for a noted one: the values with which it is noted; others are refused
};

constexpr std::string_view no_rendezvous = "muster sets MASTER_ADDR and MASTER_PORT for every rank by itself";
constexpr std::string_view one_launcher = "muster is started once, not once a node, and knows each node's rank";
constexpr std::string_view shows_plan = "muster plan shows where each rank goes, and why";
constexpr std::string_view all_variables = "all of your variables reach the ranks";
constexpr std::string_view own_engine = "muster chooses the engine; --engine and --scheduler force one";
constexpr std::string_view own_gpu = "muster gives each rank one GPU of the allocation (--ranks-per-gpu, --gpu-visibility)";
constexpr std::string_view gpu_alone =
    "a rank has one GPU and sees all those of its node; --gpu-visibility own shows it its own only";
constexpr std::string_view ends_all = "if a rank fails, muster ends the others";
constexpr std::string_view at_once = "muster passes output on as it comes";
constexpr std::string_view srun_and_sbatch = "srun and sbatch";  ///< in a job script, a directive
constexpr std::string_view own_step = "muster starts the job's step as its engine needs it";
constexpr std::string_view of_a_job = "it asks for a job: write muster submit, muster alloc, or an #SBATCH line";
constexpr std::string_view not_tuned = "muster does not tune itself while it runs";
constexpr std::int64_t most_mebibytes = 1 << 20;
constexpr std::string_view keeps_output = "write --output-dir DIR, which keeps and shows every rank's output";

constexpr foreign foreigners[]{
    {"-bycore", "mpirun", fate::means, "--map-by=slot"},
    {"-pernode", "mpirun", fate::means, "--ranks-per-node=1"},
    {"-bynode", "mpirun", fate::means, "--map-by=node"},
    {"-byslot", "mpirun", fate::means, "--map-by=slot"},
    {"-bind-to-core", "mpirun", fate::means, "--bind-to=core"},
    {"-bind-to-socket", "mpirun", fate::means, "--bind-to=socket"},
    {"-bind-to-none", "mpirun", fate::means, "--bind-to=none"},
    // MCA parameters become variables of the ranks, except for those of mpirun's daemons.
    {"-mca -gmca -omca", "mpirun", fate::variable, "OMPI_MCA_", 2},
    {"-prtemca -pmixmca -gpmixmca", "mpirun", fate::noted, "it is for mpirun's own daemons", 2},
    {"-d -noprefix -dvm -fwd-mpirun-port -enable-instant-on-support -output-proctable -use-regexp "
     "-debug-daemons-file",
     "mpirun", fate::noted, "it is for mpirun's own daemons"},
    {"-cartofile -cf -hnp -launch-agent -max-vm-size -ompi-server -personality -forward-signals -exec-agent -tmpdir "
     "-runtime-options",
     "mpirun", fate::noted, "it is for mpirun's own daemons", 1},
    {"-get-stack-traces -report-state-on-timeout", "mpirun", fate::noted, "muster shows what each rank does on --timeout"},
    {"-debug -stop-on-exec -stop-in-init -stop-in-app -debugger -index-argv-by-rank -set-cwd-to-session-dir -xterm", "mpirun",
     fate::refused, "muster has nothing like it; leave it out"},
    {"-preload-binary -preload-files", "mpirun", fate::refused,
     "keep the files where all nodes see them, or copy them first: muster stage copy"},
    {"-npersocket -ppr", "mpirun", fate::refused, "write --ranks-per-node N, and --bind-to socket"},
    {"-xml -xml-file", "mpirun", fate::refused, keeps_output},
    {"-set-env -prepend-env -append-env -unset-env", "mpirun", fate::refused, "write -x NAME=VALUE"},
    {"-am -tune", "mpirun", fate::refused, "pass it to the engine: --engine mpirun --engine-args '--tune FILE'"},
    {"-oversubscribe", "mpirun", fate::noted, "muster allows more ranks than cores (in a job: --slots-per-node N)"},
    {"-nooversubscribe", "mpirun", fate::noted, "muster says so where there are more ranks than cores"},
    {"-overload-allowed", "mpirun", fate::refused, "use --bind-to none, or --slots-per-node N"},
    {"-allow-run-as-root", "mpirun", fate::noted,
     "muster runs as root too (for mpirun as engine: --engine-args --allow-run-as-root)"},
    {"-report-bindings -display-map -display-allocation -display-devel-map -display-topo -display-comm -display-diffable-map "
     "-display-devel-allocation",
     "mpirun", fate::noted, shows_plan},
    {"-display -report-events -report-pid -report-uri -report-child-jobs-separately", "mpirun", fate::noted, shows_plan, 1},
    {"-show-progress -nw -nodaemonize -no-ready-msg -daemonize -enable-recovery -disable-recovery -continuous -novm "
     "-do-not-resolve "
     "-tv -debug-daemons -leave-session-attached -debug-devel -debug-verbose",
     "mpirun", fate::noted, "it is for mpirun's own daemons"},
    {"-use-hwthread-cpus", "mpirun", fate::noted, "muster uses hardware threads unless you give --no-smt"},
    {"-output", "srun and mpirun", fate::refused, "write --output-dir DIR, or --tag-output or --timestamp-output"},
    {"-merge-stderr-to-stdout", "mpirun", fate::refused, "write 2>&1 behind muster run"},
    {"-rankfile -rf", "mpirun", fate::refused,
     "muster reads no rank files: --cpu-map and --gpu-map say what each local rank gets"},
    {"-cpu-set -cpu-list", "mpirun", fate::refused, "use --cpu-map, or --reserved-cpus for those that no rank may have"},
    {"-prefix -path", "mpirun", fate::refused, "set PATH and LD_LIBRARY_PATH for the ranks: -x PATH=…"},
    {"-nolocal -do-not-launch", "mpirun", fate::refused, "name the hosts to be used: -H a,b; --dry-run starts nothing"},
    {"-app -configfile", "mpirun", fate::refused, "muster runs one program: let it choose by the variable RANK"},
    {"-envall -genvall", "mpiexec", fate::noted, all_variables},
    {"-envlist -genvlist", "mpiexec", fate::noted, all_variables, 1},
    {"-env -genv", "mpiexec", fate::refused, "write -x NAME=VALUE"},
    {"-envnone -genvnone", "mpiexec", fate::refused, "start muster with the variables you want: env -i …"},
    {"-launcher -rmk -bootstrap -launcher-exec -bootstrap-exec -topolib -demux -pmi-port -usize -nameserver -localhost",
     "mpiexec", fate::noted, own_engine, 1},
    {"-gpus-per-proc", "mpiexec", fate::noted, gpu_alone, 1, "1 auto AUTO"},
    {"-membind -order-nodes", "mpiexec", fate::refused, "use --bind-to numa; -H names the nodes in their order"},
    {"-outfile-pattern -errfile-pattern -prepend-pattern", "mpiexec", fate::refused, keeps_output},
    // This precedes Hydra's -profile, which has no value.
    {"-J job-name acctg-freq comment profile wckey", srun_and_sbatch, fate::noted, own_step, 1},
    {"-info -profile -enable-x -disable-x -print-all-exitcodes -disable-auto-cleanup -disable-hostname-propagation "
     "-skip-launch-node",
     "mpiexec", fate::noted, "it is for Hydra's own processes"},
    {"-N", "srun and mpirun", fate::refused,
     "it means nodes to srun and ranks a node to mpirun: write --nnodes or --ranks-per-node"},
    {"-c", "srun and mpirun", fate::refused, "it means cores a rank to srun and ranks to mpirun: write --cpus-per-rank or -n"},
    {"-G gres gpus gpus-per-node gpus-per-socket tres-per-task", "srun", fate::noted, own_gpu, 1},
    {"gpus-per-task", "srun", fate::noted, gpu_alone, 1, "1"},
    {"gpu-bind", "srun", fate::noted, gpu_alone, 1, "none closest single:1 per_task:1"},
    {"cpu-bind", srun_and_sbatch, fate::refused, "use --bind-to or --cpu-map", 1},
    {"export", "srun", fate::exports, all_variables, 1},
    {"kill-on-bad-exit", "srun", fate::noted, ends_all},
    {"-K", "srun", fate::noted, ends_all},
    {"-u unbuffered", "srun", fate::noted, at_once},
    {"overlap exact no-kill propagate compress resv-ports send-libs quit-on-interrupt disable-status immediate preserve-env",
     "srun", fate::noted, own_step},
    {"-k -I -E -X", "srun", fate::noted, own_step},
    {"-W -T wait threads slurmd-debug msg-timeout", "srun", fate::noted, own_step, 1},
    {"overcommit -O", srun_and_sbatch, fate::noted, "muster allows more ranks than cores (in a job: --slots-per-node N)"},
    {"-Q", "srun", fate::means, "--quiet"},
    {"hint threads-per-core", srun_and_sbatch, fate::refused, "use --no-smt (nomultithread), or --bind-to", 1},
    {"cpus-per-gpu", srun_and_sbatch, fate::refused, "write --cpus-per-rank N", 1},
    {"ntasks-per-core ntasks-per-socket ntasks-per-gpu", srun_and_sbatch, fate::refused,
     "write --ranks-per-node N, --cpus-per-rank N or --ranks-per-gpu N", 1},
    {"-w nodelist exclude relative", srun_and_sbatch, fate::refused, "name the nodes to be used: -H a,b", 1},
    {"pty", "srun", fate::refused, "ranks get no terminal; leave it out"},
    {"bcast bcast-exclude", "srun", fate::refused, "copy the file first: muster stage copy"},
    {"prolog epilog task-prolog task-epilog", "srun", fate::refused, "start a script that calls it and then the program"},
    {"signal", srun_and_sbatch, fate::refused, "write --signal-before-end SIGNAL@TIME", 1},
    {"-s", "srun and mpirun", fate::refused, "it means sharing nodes to srun and copying the program to mpirun: leave it out"},
    {"-p partition -A account qos time reservation constraint mem -B -C -L -M -S -b", srun_and_sbatch, fate::refused, of_a_job,
     1},
    {"bb bbf begin clusters cluster-constraint core-spec cores-per-socket sockets-per-node cpu-freq gpu-freq "
     "deadline delay-boot dependency extra-node-info gres-flags het-group jobid licenses mail-type mail-user mcs-label "
     "mem-bind mem-per-cpu mem-per-gpu mincpus network power priority switches thread-spec time-min tmp uid gid",
     srun_and_sbatch, fate::refused, of_a_job, 1},
    // A value may be joined to these by "=".
    {"exclusive contiguous hold nice no-allocate -Z reboot spread-job use-min-nodes", srun_and_sbatch, fate::refused, of_a_job},
    {"distribution", srun_and_sbatch, fate::refused, "use --map-by slot (block) or node (cyclic)", 1},
    {"multi-prog", "srun", fate::refused, "muster runs one program: let it choose by the variable RANK"},
    {"-o -e output error", srun_and_sbatch, fate::refused, "write --output-dir DIR, or > FILE behind muster run", 1},
    {"mpi use-mpi gloo use-gloo jsrun use-jsrun tcp", "horovodrun", fate::noted, own_engine},
    {"mpi-threads-disable no-mpi-threads-disable", "horovodrun", fate::noted, own_engine},
    {"ssh-port ssh-identity-file", "horovodrun", fate::refused, "write --remote-shell 'ssh -p PORT -i FILE'", 1},
    {"disable-cache", "horovodrun", fate::noted, "muster keeps no cache of hosts"},
    {"log-with-timestamp log-without-timestamp log-hide-timestamp no-log-hide-timestamp", "horovodrun", fate::noted,
     "muster's own log has times"},
    {"hierarchical-allreduce no-hierarchical-allreduce hierarchical-allgather no-hierarchical-allgather torus-allreduce "
     "no-torus-allreduce",
     "horovodrun", fate::noted, "muster chooses by the ranks' places (MUSTER_COMM_BACKEND)"},
    {"autotune no-autotune", "horovodrun", fate::noted, not_tuned},
    {"autotune-log-file autotune-warmup-samples autotune-steps-per-sample autotune-bayes-opt-max-samples "
     "autotune-gaussian-process-noise",
     "horovodrun", fate::noted, not_tuned, 1},
    {"thread-affinity gloo-timeout-seconds num-nccl-streams", "horovodrun", fate::noted,
     "muster binds and waits by its own settings", 1},
    {"config-file", "horovodrun", fate::refused, "muster reads muster.toml; set HOROVOD_… with -x NAME=VALUE"},
    {"-cb check-build", "horovodrun", fate::refused, "muster doctor says what is here"},
    {"binding-args", "horovodrun", fate::refused, "use --bind-to"},
    {"fusion-threshold-mb", "horovodrun", fate::mebibytes, "HOROVOD_FUSION_THRESHOLD", 1},
    {"cycle-time-ms", "horovodrun", fate::variable, "HOROVOD_CYCLE_TIME", 1},
    {"cache-capacity", "horovodrun", fate::variable, "HOROVOD_CACHE_CAPACITY", 1},
    {"timeline-filename", "horovodrun", fate::variable, "HOROVOD_TIMELINE", 1},
    {"stall-check-warning-time-seconds", "horovodrun", fate::variable, "HOROVOD_STALL_CHECK_TIME_SECONDS", 1},
    {"stall-check-shutdown-time-seconds", "horovodrun", fate::variable, "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", 1},
    {"timeline-mark-cycles", "horovodrun", fate::means, "--env=HOROVOD_TIMELINE_MARK_CYCLES=1"},
    {"no-timeline-mark-cycles", "horovodrun", fate::means, "--env=HOROVOD_TIMELINE_MARK_CYCLES=0"},
    {"no-stall-check", "horovodrun", fate::means, "--env=HOROVOD_STALL_CHECK_DISABLE=1"},
    {"stall-check", "horovodrun", fate::means, "--env=HOROVOD_STALL_CHECK_DISABLE=0"},
    {"log-level", "horovodrun", fate::refused, "write -x HOROVOD_LOG_LEVEL=LEVEL; muster's own log: MUSTER_LOG=LEVEL"},
    {"standalone", "torchrun", fate::noted, "muster needs no rendezvous (--nnodes 1 keeps to one node)"},
    {"rdzv-backend rdzv-endpoint rdzv-id rdzv-conf master-addr master-port local-addr", "torchrun", fate::noted, no_rendezvous,
     1},
    {"node-rank", "torchrun", fate::noted, one_launcher, 1, "0"},
    {"monitor-interval", "torchrun", fate::noted, "muster sees the end of a rank at once", 1},
    {"start-method role event-log-handler", "torchrun", fate::noted, "muster starts programs, not functions", 1},
    {"signals-to-handle", "torchrun", fate::noted, "muster hands signals on to the ranks", 1},
    {"numa-binding", "torchrun", fate::noted, "muster binds each rank next to its GPU (--bind-to)", 1},
    {"no-python", "torchrun", fate::noted, "muster adds no interpreter"},
    {"log-line-prefix-template", "torchrun", fate::refused, "write --tag-output", 1},
    {"-m", "srun and torchrun", fate::refused,
     "it means the distribution to srun and a module to torchrun: write --map-by slot or node, or muster run -- python3 -m "
     "MODULE"},
    {"-r", "srun and torchrun", fate::refused,
     "it means the first node to srun and files of output to torchrun: write -H a,b or --output-dir DIR", 1},
    {"-t", "srun and torchrun", fate::refused,
     "it means a time limit to srun and files of output to torchrun: write --timeout TIME or --output-dir DIR", 1},
    {"module", "torchrun", fate::refused, "write: muster run -- python3 -m MODULE"},
    {"run-path", "torchrun", fate::refused, "write: muster run -- python3 FILE"},
    {"log-dir logs-specs", "torchrun", fate::refused, "write --output-dir DIR", 1},
    {"local-ranks-filter", "torchrun", fate::refused, "write --show-ranks R,R…, the numbers of ranks in the whole run", 1},
    {"redirects tee duplicate-stdout-filters duplicate-stderr-filters", "torchrun", fate::refused,
     keeps_output, 1},
    {"virtual-local-rank", "torchrun", fate::refused, keeps_output},
};

constexpr std::string_view sbatch_and_salloc = "sbatch and salloc";
constexpr std::string_view of_gpus = "write --gpus N and --gpus-per-node N, or --ranks N for ranks without GPUs";

/// Gives the meanings of sbatch's, salloc's and qsub's options for commands that ask for a job, which look them up here first.
constexpr foreign job_foreigners[]{
    {"-p -q", "sbatch and qsub", fate::means, "--queue", 1},
    {"-J", sbatch_and_salloc, fate::means, "--job-name", 1},
    {"-P", "qsub", fate::means, "--account", 1},
    {"-C", sbatch_and_salloc, fate::means, "--constraint", 1},
    {"-G", sbatch_and_salloc, fate::means, "--gpus", 1},
    {"-H", sbatch_and_salloc, fate::means, "--hold"},
    {"signal", sbatch_and_salloc, fate::means, "--signal-before-end", 1},
    {"gres gpus-per-socket tres-per-task", sbatch_and_salloc, fate::refused, of_gpus},
    {"-d dependency", sbatch_and_salloc, fate::refused, "write --after [KIND:]ID,ID…, where KIND is ok, any or notok"},
    {"-a", "sbatch and qsub", fate::refused,
     "write --array LIST; to start at a time, --sbatch '--begin=TIME' or --qsub '-a TIME'"},
    {"-v", "qsub", fate::refused, "write -x NAME=VALUE"},
    {"-r", "qsub", fate::refused, "write --requeue"},
    {"-I", "sbatch and qsub", fate::refused, "muster alloc gives you a job with a shell"},
    {"wrap", sbatch_and_salloc, fate::refused, "write the program behind the options: -- program args…"},
    {"test-only", sbatch_and_salloc, fate::refused,
     "muster submit --dry-run shows what would be submitted; muster script … >job.sh && sbatch --test-only job.sh asks Slurm"},
    {"wait", sbatch_and_salloc, fate::refused, "muster watch ID follows the job until it has ended"},
    {"parsable", sbatch_and_salloc, fate::noted, "muster submit --json is for programs"},
    {"-m", "qsub", fate::refused,
     "write --qsub '-m abe' for mail; a module of Python goes behind the options: -- python3 -m MODULE"},
    {"-l -j -W -R -k", "qsub", fate::directive, "--qsub", 1},
    {"-V", "qsub", fate::directive, "--qsub"},
    {"-D chdir", sbatch_and_salloc, fate::means, "--wd", 1},
    {"-i input open-mode get-user-env export-file ntasks-per-switch batch", sbatch_and_salloc, fate::directive, "--sbatch", 1},
    {"output error", srun_and_sbatch, fate::refused, "", 1},  // like -o and -e below; mpirun has no such option
    {"-s oversubscribe kill-on-invalid-dep ignore-pbs", sbatch_and_salloc, fate::directive, "--sbatch"},
};

/// The parts of a word: "--np=4" has two dashes, "np" and "=4".
struct option_word {
    std::size_t dashes;
    std::string name;  ///< with hyphens as in muster
    std::string rest;
};

option_word take_apart(std::string const& word) {
    std::size_t const dashes = word.starts_with("--") ? 2 : 1;
    auto const equals = std::min(word.find('='), word.size());
    option_word parts{dashes, word.substr(dashes, equals - dashes), word.substr(equals)};
    if (dashes == 2) std::ranges::replace(parts.name, '_', '-');
    return parts;
}

bool is_called(std::string_view aliases, option_word const& parts) {
    for (auto const alias : words_of(aliases)) {
        bool const single = alias.front() == '-';
        auto const name = single ? alias.substr(1) : alias;
        if (name == parts.name && (parts.dashes == 2 ? !single || name.size() > 1 : single)) return true;
    }
    return false;
}

bool is_one_of(std::string_view words, std::string_view word) {
    for (auto const each : words_of(words))
        if (each == word) return true;
    return false;
}

foreign const* find_foreign(std::string_view command, option_word const& parts) {
    if (writes_job(command))
        for (auto const& row : job_foreigners)
            if (is_called(row.names, parts)) return &row;
    for (auto const& row : foreigners)
        if (is_called(row.names, parts)) return &row;
    return nullptr;
}

/// Returns the setting that a word means, by name, by letter or by another tool's name, and whether the word is its negation.
std::pair<setting const*, bool> find_meant(std::string_view command, option_word const& parts) {
    for (auto const& row : settings()) {
        if (!takes(command, row)) continue;
        if (parts.dashes == 2 && parts.name == row.name) return {&row, false};
        if (parts.dashes == 2 && row.kind == setting_kind::flag && parts.name == "no-" + std::string(row.name))
            return {&row, true};
        if (!takes_by_name_only(command, row) && is_called(row.aliases, parts)) return {&row, false};
    }
    if (parts.dashes == 1 && !parts.name.empty())
        for (auto const& row : settings())
            if (takes(command, row) && !takes_by_name_only(command, row) && row.letter != 0 && parts.name.front() == row.letter)
                return {&row, false};
    return {nullptr, false};
}

/// Refuses a number of nodes in commands that count GPUs or ranks.
void refuse_number_of_nodes(std::string_view command, option_word const& parts, std::string const& word) {
    if (!writes_job(command) || (parts.name != "N" && parts.name != "nodes" && parts.name != "nnodes")) return;
    throw_error(errc::usage,
                "muster {} takes no {}: the number of nodes follows from --gpus N and --gpus-per-node N, or from --ranks N and "
                "--ranks-per-node N; write these",
                command, word.substr(0, word.find('=')));
}

/// Returns the one-letter option and the value of "-pdebug" or "-N2". The value is a number, unless `command` asks for a job or
/// the option takes a name.
std::optional<std::pair<foreign const*, std::string>> find_joined(std::string_view command, option_word const& parts) {
    if (parts.dashes != 1 || parts.name.size() < 2) return std::nullopt;
    auto const letter = parts.name.substr(0, 1);
    auto value = parts.name.substr(1) + parts.rest;
    if (!writes_job(command) && !is_one_of("J p w A C", letter) && !is_digit(value.front())) return std::nullopt;
    refuse_number_of_nodes(command, {1, letter, ""}, "-" + letter);
    auto const* row = find_foreign(command, {1, letter, ""});
    if (row == nullptr || (row->values != 1 && row->what != fate::refused)) return std::nullopt;
    return std::pair(row, std::move(value));
}

/// Takes the option of another tool at args[at].
class foreign_taker {
  public:
    foreign_taker(std::string_view command, foreign const& option, std::string word, std::optional<std::string> joined)
        : command_(command), option_(option), word_(std::move(word)), joined_(std::move(joined)) {}

    /// Takes the words that belong to it, too; `at` is then the last of these.
    void take(std::vector<std::string> const& args, std::size_t& at, rewritten_line& own) const {
        bool const is_line = option_.what == fate::directive || (option_.tool == srun_and_sbatch && writes_job(command_));
        if (is_line) throw_line(args, at);
        if (option_.what == fate::refused) refuse(option_.text);
        auto const values = take_values(args, at);
        switch (option_.what) {
            case fate::means: mean(values, own); return;
            case fate::mebibytes: own.options.push_back(fmt::format("--env={}={}", option_.text, bytes_of(values[0]))); return;
            case fate::variable:
                // The first word of an MCA parameter is the end of the variable's name.
                own.options.push_back(option_.values == 2 ? fmt::format("--env={}{}={}", option_.text, values[0], values[1])
                                                          : fmt::format("--env={}={}", option_.text, values[0]));
                return;
            case fate::exports:
                for (auto const& entry : read_exports(word_, values[0])) own.options.push_back("--env=" + entry);
                if (values[0] != "ALL") return;
                break;
            default: break;
        }
        if (!option_.only.empty() && !is_one_of(option_.only, values.front()))
            refuse(fmt::format("{}; {} is not what muster does: leave it out", option_.text, values.front()));
        own.notes.push_back(fmt::format("{} ({}) changes nothing: {}", word_, option_.tool, option_.text));
    }

  private:
    [[noreturn]] void refuse(std::string_view way) const {
        throw_error(errc::usage, "{} is an option of {}: {}", word_, option_.tool, way);
    }

    /// Shows the directive to write, with its value.
    [[noreturn]] void throw_line(std::vector<std::string> const& args, std::size_t at) const {
        bool const is_long = word_.starts_with("--");
        auto line = word_;
        if (joined_)
            line += (is_long ? "=" : " ") + *joined_;
        else if (option_.values == 1)
            line += (is_long ? "=" : " ") + (at + 1 < args.size() && !args[at + 1].starts_with('-') ? args[at + 1] : "…");
        auto const quoted = line.find('\'') == std::string::npos ? fmt::format("'{}'", line) : shell_quote(line);
        throw error(errc::usage, option_.what == fate::directive
                                     ? fmt::format("muster {} takes no {}: for this option of {} write {} {}", command_, word_,
                                                   option_.tool, option_.text, quoted)
                                     : fmt::format("muster {} takes no {}: write --sbatch {}, or --qsub with PBS's word",
                                                   command_, word_, quoted));
    }

    std::vector<std::string> take_values(std::vector<std::string> const& args, std::size_t& at) const {
        std::vector<std::string> values;
        if (joined_) values.push_back(*joined_);
        while (values.size() < option_.values && at + 1 < args.size()) values.push_back(args[++at]);
        if (values.size() < option_.values)
            refuse(fmt::format("{} belong{} to it; give {}, or leave it out", option_.values == 1 ? "a word" : "two words",
                               option_.values == 1 ? "s" : "", option_.values == 1 ? "it" : "them"));
        return values;
    }

    std::int64_t bytes_of(std::string const& value) const {
        auto const count = parse_integer(value);
        if (!count || *count < 0 || *count > most_mebibytes)
            refuse(fmt::format("'{}' is no number of MiB; give one, such as 64", value));
        return *count << 20;
    }

    void mean(std::vector<std::string> const& values, rewritten_line& own) const {
        auto option = std::string(option_.text);
        if (find_setting(option.substr(2, option.find('=') - 2), command_) == nullptr)
            throw_error(errc::usage, "{} is {}, which muster {} does not take; leave it out", word_, option_.text, command_);
        if (!values.empty()) {
            own.spelled[option.substr(2)] = word_;
            option += "=" + values.front();
        }
        own.options.push_back(std::move(option));
    }

    std::string_view command_;
    foreign const& option_;
    std::string word_;
    std::optional<std::string> joined_;  ///< the value that is part of the word
};

/// Returns the meaning of qsub's -J (an array) and -N (a job's name), which are Slurm's letters for a job's name and a number of
/// nodes.
std::optional<std::string> meant_by_qsub(std::string_view command, option_word const& parts, std::vector<std::string> const& args,
                                         std::size_t at) {
    if (!writes_job(command) || parts.dashes != 1 || (parts.name != "N" && parts.name != "J") || at + 1 >= args.size())
        return std::nullopt;
    auto const& value = args[at + 1];
    bool const is_number = value.find_first_not_of("0123456789-:%,") == std::string::npos;
    if (parts.name == "N" && !is_number) return "--job-name";
    bool const is_range = is_number && value.find('-') != std::string::npos;
    return parts.name == "J" && is_range ? std::optional<std::string>("--array") : std::nullopt;
}

}  // namespace

bool is_directive_of_sbatch(std::string_view name) noexcept {
    return std::ranges::any_of(foreigners,
                               [&](foreign const& row) { return row.tool == srun_and_sbatch && is_one_of(row.names, name); });
}

namespace {

/// Returns the errors about later options than the refused one at args[at] that would be refused, too, so that a user of another
/// tool learns them at once. Skips values by the table; stops at an option that the table does not have.
std::string refuse_later(std::string_view command, std::vector<std::string> const& args, std::size_t at) {
    std::string later;
    for (std::size_t i = at; i < args.size() && args[i] != "--" && args[i].size() > 1 && args[i].front() == '-'; ++i) {
        auto const parts = take_apart(args[i]);
        auto const* own = find_meant(command, parts).first;
        bool const is_joined = own != nullptr && parts.dashes == 1 && parts.name.size() > 1 && !is_called(own->aliases, parts);
        auto const* other = own == nullptr || is_joined ? find_foreign(command, parts) : nullptr;
        if (own == nullptr && other == nullptr) break;
        if (other != nullptr && other->what == fate::refused && i > at)
            later += fmt::format("\n{} is an option of {}: {}", args[i].substr(0, args[i].find('=')), other->tool, other->text);
        bool const has_value = other != nullptr ? other->values > 0 : own->kind != setting_kind::flag && !is_joined;
        if (has_value && parts.rest.empty()) i += other != nullptr ? other->values : 1;
    }
    return later;
}

}  // namespace

rewritten_line rewrite_foreign_options(std::string_view command, std::vector<std::string> const& args) {
    rewritten_line own;
    std::size_t i = 0;
    for (; i < args.size() && args[i] != "--" && args[i].size() > 1 && args[i].front() == '-'; ++i) {
        auto const parts = take_apart(args[i]);
        auto const [row, negated] = find_meant(command, parts);
        bool const by_letter = row != nullptr && parts.dashes == 1 && !is_called(row->aliases, parts);
        // -np is an alias from mpirun and not -n with the value p; likewise no foreign word is a letter with its value.
        bool const may_be_word = row == nullptr || (by_letter && parts.name.size() > 1);
        if (auto const own_word = meant_by_qsub(command, parts, args, i)) {
            own.spelled[own_word->substr(2)] = args[i];
            own.options.push_back(fmt::format("{}={}", *own_word, args[i + 1]));
            ++i;
            continue;
        }
        if (row == nullptr || row->name == "nnodes") refuse_number_of_nodes(command, parts, args[i]);
        if (auto const* other = may_be_word ? find_foreign(command, parts) : nullptr; other != nullptr) {
            auto const value = parts.rest.empty() ? std::nullopt : std::optional(parts.rest.substr(1));
            auto const at = i;
            try {
                foreign_taker(command, *other, args[i].substr(0, args[i].find('=')), value).take(args, i, own);
            } catch (error const& e) {
                if (other->what != fate::refused) throw;
                throw error(e.code(), e.what() + refuse_later(command, args, at));
            }
            continue;
        }
        if (row == nullptr) {
            if (auto const joined = find_joined(command, parts)) {
                foreign_taker(command, *joined->first, args[i].substr(0, 2), joined->second).take(args, i, own);
                continue;
            }
            own.options.push_back(args[i]);
            continue;
        }
        auto const name = (negated ? "--no-" : "--") + std::string(row->name);
        own.spelled[std::string(row->name)] = by_letter ? args[i].substr(0, 2) : args[i].substr(0, args[i].find('='));
        bool const attached = by_letter ? args[i].size() > 2 : !parts.rest.empty();
        own.options.push_back(!by_letter ? name + parts.rest : row->kind == setting_kind::flag || attached ? args[i] : name);
        if (row->kind == setting_kind::flag || attached || i + 1 == args.size()) continue;
        // A value that begins with a dash is no option in one word with its name; but an empty value cannot be written so.
        if (auto const& value = args[++i]; value.empty())
            own.options.push_back(value);
        else
            own.options.back() += "=" + value;
        // horovodrun uses two words for it.
        auto const is_number = [&](std::size_t at) { return at < args.size() && parse_integer(args[at]); };
        if (row->name == "blacklist-cooldown-range" && is_number(i) && is_number(i + 1)) own.options.back() += "," + args[++i];
    }
    if (i < args.size() && args[i] == "--") ++i;
    own.command.assign(args.begin() + static_cast<std::ptrdiff_t>(i), args.end());
    return own;
}

}  // namespace muster
