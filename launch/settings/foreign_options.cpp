#include "launch/settings/foreign_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

/// What becomes of an option of another tool.
enum class fate {
    means,      ///< `text` is muster's option for it
    noted,      ///< it changes nothing: `text` says why
    variable,   ///< its value becomes that of the ranks' variable `text`
    mebibytes,  ///< the same, in bytes
    refused,    ///< muster does otherwise: `text` is the way out
};

struct foreign {
    std::string_view names;  ///< as in setting::aliases
    std::string_view tool;
    fate what;
    std::string_view text;
    std::size_t values = 0;      ///< how many words follow it
    std::string_view only = "";  ///< of one that is noted: with these values; refused with others
};

constexpr std::string_view no_rendezvous = "muster sets MASTER_ADDR and MASTER_PORT for every rank by itself";
constexpr std::string_view one_launcher = "muster is started once, not once a node, and knows each node's rank";
constexpr std::string_view not_ssh = "the engine connects to the nodes: --engine mpirun --engine-args '…'";
constexpr std::string_view shows_plan = "muster plan shows where each rank goes, and why";
constexpr std::string_view all_variables = "all of your variables reach the ranks";
constexpr std::string_view own_engine = "muster chooses the engine; --engine and --scheduler force one";
constexpr std::string_view own_gpu = "muster gives each rank one GPU of the allocation (--ranks-per-gpu, --gpu-visibility)";
constexpr std::string_view ends_all = "if a rank fails, muster ends the others";
constexpr std::string_view at_once = "muster passes output on as it comes";
constexpr std::string_view srun_and_sbatch = "srun and sbatch";  ///< of a job script, a directive
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
    // MCA parameters are variables of the ranks; those of mpirun's own daemons are not.
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
    {"-output", "mpirun", fate::refused, "write --tag-output, --timestamp-output or --output-dir DIR"},
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
    {"-gpus-per-proc", "mpiexec", fate::noted, own_gpu, 1, "1 auto AUTO"},
    {"-membind -order-nodes", "mpiexec", fate::refused, "use --bind-to numa; -H names the nodes in their order"},
    {"-outfile-pattern -errfile-pattern -prepend-pattern", "mpiexec", fate::refused, keeps_output},
    // Before -profile of Hydra, which has no value.
    {"-J job-name acctg-freq comment profile wckey", srun_and_sbatch, fate::noted, own_step, 1},
    {"-info -profile -enable-x -disable-x -print-all-exitcodes -disable-auto-cleanup -disable-hostname-propagation "
     "-skip-launch-node",
     "mpiexec", fate::noted, "it is for Hydra's own processes"},
    {"-N", "srun and mpirun", fate::refused,
     "it means nodes to srun and ranks a node to mpirun: write --nnodes or --ranks-per-node"},
    {"-c", "srun and mpirun", fate::refused, "it means cores a rank to srun and ranks to mpirun: write --cpus-per-rank or -n"},
    {"-G gres gpus gpus-per-node gpus-per-socket tres-per-task", "srun", fate::noted, own_gpu, 1},
    {"gpus-per-task", "srun", fate::noted, own_gpu, 1, "1"},
    {"gpu-bind", "srun", fate::noted, own_gpu, 1, "none closest single:1 per_task:1"},
    {"cpu-bind", srun_and_sbatch, fate::refused, "use --bind-to or --cpu-map"},
    {"export", "srun", fate::noted, all_variables, 1, "ALL"},
    {"kill-on-bad-exit", "srun", fate::noted, ends_all},
    {"-K", "srun", fate::noted, ends_all},
    {"-u unbuffered", "srun", fate::noted, at_once},
    {"overlap exact no-kill propagate compress resv-ports send-libs quit-on-interrupt disable-status immediate preserve-env",
     "srun", fate::noted, own_step},
    {"-k -I -E -X", "srun", fate::noted, own_step},
    {"-W -T wait threads slurmd-debug msg-timeout", "srun", fate::noted, own_step, 1},
    {"overcommit -O", srun_and_sbatch, fate::noted, "muster allows more ranks than cores (in a job: --slots-per-node N)"},
    {"-Q", "srun", fate::means, "--quiet"},
    {"hint threads-per-core", srun_and_sbatch, fate::refused, "use --no-smt (nomultithread), or --bind-to"},
    {"cpus-per-gpu", srun_and_sbatch, fate::refused, "write --cpus-per-rank N"},
    {"ntasks-per-core ntasks-per-socket ntasks-per-gpu", srun_and_sbatch, fate::refused,
     "write --ranks-per-node N, --cpus-per-rank N or --ranks-per-gpu N"},
    {"-w nodelist exclude relative", srun_and_sbatch, fate::refused, "name the nodes to be used: -H a,b"},
    {"pty", "srun", fate::refused, "ranks get no terminal; leave it out"},
    {"bcast bcast-exclude", "srun", fate::refused, "copy the file first: muster stage copy"},
    {"prolog epilog task-prolog task-epilog", "srun", fate::refused, "start a script that calls it and then the program"},
    {"signal", srun_and_sbatch, fate::refused, "write --signal-before-end SIGNAL@TIME"},
    {"-s", "srun and mpirun", fate::refused, "it means sharing nodes to srun and copying the program to mpirun: leave it out"},
    {"-p partition -A account qos time reservation constraint mem exclusive -B -C -L -M -S -Z -b", srun_and_sbatch, fate::refused,
     of_a_job, 1},
    {"bb bbf begin clusters cluster-constraint contiguous core-spec cores-per-socket sockets-per-node cpu-freq gpu-freq "
     "deadline delay-boot dependency extra-node-info gres-flags het-group hold jobid licenses mail-type mail-user mcs-label "
     "mem-bind mem-per-cpu mem-per-gpu mincpus network nice no-allocate power priority reboot spread-job switches thread-spec "
     "time-min tmp use-min-nodes uid gid",
     srun_and_sbatch, fate::refused, of_a_job, 1},
    {"distribution", srun_and_sbatch, fate::refused, "use --map-by slot (block) or node (cyclic)"},
    {"multi-prog", "srun", fate::refused, "muster runs one program: let it choose by the variable RANK"},
    {"-o -e output error", srun_and_sbatch, fate::refused, "write --output-dir DIR, or > FILE behind muster run"},
    {"mpi use-mpi gloo use-gloo jsrun use-jsrun tcp", "horovodrun", fate::noted, own_engine},
    {"mpi-threads-disable no-mpi-threads-disable", "horovodrun", fate::noted, own_engine},
    {"ssh-port ssh-identity-file", "horovodrun", fate::refused, not_ssh},
    {"disable-cache", "horovodrun", fate::noted, "muster keeps no cache of hosts"},
    {"log-with-timestamp log-without-timestamp log-hide-timestamp no-log-hide-timestamp", "horovodrun", fate::noted,
     "muster's own log has times"},
    {"hierarchical-allreduce no-hierarchical-allreduce hierarchical-allgather no-hierarchical-allgather torus-allreduce "
     "no-torus-allreduce",
     "horovodrun", fate::noted, "muster chooses by the ranks' places (MUSTER_BACKEND)"},
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
    {"log-line-prefix-template", "torchrun", fate::refused, "write --tag-output"},
    {"-m module", "torchrun", fate::refused, "write: muster run -- python3 -m MODULE"},
    {"run-path", "torchrun", fate::refused, "write: muster run -- python3 FILE"},
    {"log-dir logs-specs", "torchrun", fate::refused, "write --output-dir DIR"},
    {"-r redirects -t tee local-ranks-filter duplicate-stdout-filters duplicate-stderr-filters virtual-local-rank", "torchrun",
     fate::refused, keeps_output},
};

/// A word's parts: "--np=4" is two dashes, "np" and "=4".
struct option_word {
    std::size_t dashes;
    std::string name;  ///< in muster's hyphens
    std::string rest;
};

option_word take_apart(std::string const& word) {
    std::size_t const dashes = word.starts_with("--") ? 2 : 1;
    auto const equals = std::min(word.find('='), word.size());
    option_word parts{dashes, word.substr(dashes, equals - dashes), word.substr(equals)};
    if (dashes == 2) std::replace(parts.name.begin(), parts.name.end(), '_', '-');
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

foreign const* find_foreign(option_word const& parts) {
    for (auto const& row : foreigners)
        if (is_called(row.names, parts)) return &row;
    return nullptr;
}

/// The setting that a word means, by name, by letter or by another tool's name, and whether the word is its negation.
std::pair<setting const*, bool> find_meant(std::string_view command, option_word const& parts) {
    for (auto const& row : settings()) {
        if (!takes(command, row)) continue;
        if (parts.dashes == 2 && parts.name == row.name) return {&row, false};
        if (parts.dashes == 2 && row.kind == setting_kind::flag && parts.name == "no-" + std::string(row.name))
            return {&row, true};
        if (is_called(row.aliases, parts)) return {&row, false};
    }
    if (parts.dashes == 1 && !parts.name.empty())
        for (auto const& row : settings())
            if (takes(command, row) && row.letter != 0 && parts.name.front() == row.letter) return {&row, false};
    return {nullptr, false};
}

/// Such commands count GPUs.
void refuse_number_of_nodes(std::string_view command, option_word const& parts, std::string const& word) {
    if (!writes_job(command) || (parts.name != "N" && parts.name != "nodes" && parts.name != "nnodes")) return;
    throw error(errc::usage,
                fmt::format("muster {} takes no {}: the number of nodes follows from --gpus N and --gpus-per-node N; "
                            "write these",
                            command, word.substr(0, word.find('='))));
}

}  // namespace

namespace {

/// Takes the option that is args[at], and the words that belong to it; `at` is then the last of these.
void take_foreign(std::string_view command, foreign const& option, option_word const& parts, std::vector<std::string> const& args,
                  std::size_t& at, rewritten_line& own) {
    std::string const word = args[at].substr(0, args[at].find('='));
    auto const refuse = [&](std::string_view way) {
        throw error(errc::usage, fmt::format("{} is an option of {}: {}", word, option.tool, way));
    };
    bool const apart = parts.rest.empty() && option.values == 1 && at + 1 < args.size();
    auto const own_text = apart ? args[at] + " " + args[at + 1] : args[at];
    if (option.tool == srun_and_sbatch && writes_job(command))
        throw error(errc::usage, fmt::format("muster {} takes no {}: write --sbatch '{}', or --qsub with PBS's word", command,
                                             word, own_text));
    if (option.what == fate::refused) refuse(option.text);
    if (option.what == fate::means) {
        own.options.emplace_back(option.text);
        return;
    }
    std::vector<std::string> values;
    if (!parts.rest.empty()) values.push_back(parts.rest.substr(1));
    while (values.size() < option.values && at + 1 < args.size()) values.push_back(args[++at]);
    if (values.size() < option.values)
        refuse(fmt::format("{} belong{} to it; give {}, or leave it out", option.values == 1 ? "a word" : "two words",
                           option.values == 1 ? "s" : "", option.values == 1 ? "it" : "them"));
    if (option.what == fate::mebibytes) {
        auto const count = parse_integer(values[0]);
        if (!count || *count < 0 || *count > most_mebibytes)
            refuse(fmt::format("'{}' is no number of MiB; give one, such as 64", values[0]));
        own.options.push_back(fmt::format("--env={}={}", option.text, *count << 20));
        return;
    }
    if (option.what == fate::variable) {
        // Of an MCA parameter the first word is the end of the variable's name.
        own.options.push_back(option.values == 2 ? fmt::format("--env={}{}={}", option.text, values[0], values[1])
                                                 : fmt::format("--env={}={}", option.text, values[0]));
        return;
    }
    if (!option.only.empty() && !is_one_of(option.only, values.front()))
        refuse(fmt::format("{}; {} is not what muster does: leave it out", option.text, values.front()));
    own.notes.push_back(fmt::format("{} ({}) changes nothing: {}", word, option.tool, option.text));
}

}  // namespace

rewritten_line rewrite_foreign_options(std::string_view command, std::vector<std::string> const& args) {
    rewritten_line own;
    std::size_t i = 0;
    for (; i < args.size() && args[i] != "--" && args[i].size() > 1 && args[i].front() == '-'; ++i) {
        auto const parts = take_apart(args[i]);
        auto const [row, negated] = find_meant(command, parts);
        bool const by_letter = row != nullptr && parts.dashes == 1 && !is_called(row->aliases, parts);
        // -np is an alias of mpirun's and not -n with the value p; likewise no foreign word is a letter with its value.
        bool const may_be_word = row == nullptr || (by_letter && parts.name.size() > 1);
        if (row == nullptr || row->name == "nnodes") refuse_number_of_nodes(command, parts, args[i]);
        if (auto const* other = may_be_word ? find_foreign(parts) : nullptr; other != nullptr) {
            take_foreign(command, *other, parts, args, i, own);
            continue;
        }
        if (row == nullptr) {
            own.options.push_back(args[i]);
            continue;
        }
        auto const name = (negated ? "--no-" : "--") + std::string(row->name);
        own.spelled[std::string(row->name)] = by_letter ? args[i].substr(0, 2) : args[i].substr(0, args[i].find('='));
        bool const attached = by_letter ? args[i].size() > 2 : !parts.rest.empty();
        own.options.push_back(!by_letter ? name + parts.rest : row->kind == setting_kind::flag || attached ? args[i] : name);
        if (row->kind == setting_kind::flag || attached || i + 1 == args.size()) continue;
        // As one word, so that a value that begins with a dash is no option; but an empty one cannot be written so.
        if (auto const& value = args[++i]; value.empty())
            own.options.push_back(value);
        else
            own.options.back() += "=" + value;
        // horovodrun has two words for it.
        auto const is_number = [&](std::size_t at) { return at < args.size() && parse_integer(args[at]); };
        if (row->argument == "LO,HI" && is_number(i) && is_number(i + 1)) own.options.back() += "," + args[++i];
    }
    if (i < args.size() && args[i] == "--") ++i;
    own.command.assign(args.begin() + static_cast<std::ptrdiff_t>(i), args.end());
    return own;
}

// Values of options as other tools write them: rewrites them as muster's own.

namespace {

using meant = std::vector<std::pair<std::string, std::string>>;

[[noreturn]] void refuse(setting const& row, std::string const& value, std::size_t offset, std::string const& why) {
    throw parse_error(fmt::format("--{}", row.name), value, offset, why, errc::usage);
}

/// torchrun's "2:2" is 2; "1:4" would be elastic.
meant nodes_meant(setting const& row, std::string const& value) {
    auto const colon = value.find(':');
    if (colon == std::string::npos) return {{"nnodes", value}};
    if (value.substr(0, colon) != value.substr(colon + 1))
        refuse(row, value, colon, "the number of nodes is fixed while a program runs; give one number");
    return {{"nnodes", value.substr(0, colon)}};
}

/// mpirun's "slot:pe=2", "ppr:4:node", "ppr:4:node:pe=2".
meant map_meant(setting const& row, std::string const& value) {
    auto const parts = split(value, ':');
    if (parts.size() == 1 && parts[0] != "core" && parts[0] != "numa" && parts[0] != "socket" && parts[0] != "package")
        return {{"map-by", value}};
    auto const offset_of = [&](std::size_t i) { return static_cast<std::size_t>(parts[i].data() - value.data()); };
    meant result;
    std::size_t next = 1;
    if (parts[0] == "ppr") {
        if (parts.size() < 3) refuse(row, value, value.size(), "the part 'node' is missing; write ppr:N:node");
        if (parts[2] != "node")
            refuse(row, value, offset_of(2),
                   "muster counts ranks by node; write ppr:N:node, and --bind-to for what each gets there");
        result = {{"map-by", "slot"}, {"ranks-per-node", std::string(parts[1])}};
        next = 3;
    } else if (parts[0] == "slot" || parts[0] == "node") {
        result = {{"map-by", std::string(parts[0])}};
    } else {
        refuse(row, value, 0, "--map-by chooses the node of a rank; write slot or node, and --bind-to for what it gets there");
    }
    for (; next < parts.size(); ++next) {
        if (parts[next].size() < 4 || (!parts[next].starts_with("pe=") && !parts[next].starts_with("PE=")))
            refuse(row, value, offset_of(next), "this modifier is unknown; use PE=N, which is --cpus-per-rank N");
        result.emplace_back("cpus-per-rank", std::string(parts[next].substr(3)));
    }
    return result;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> rewrite_foreign_value(setting const& row, std::string const& value) {
    if (row.name == "nnodes") return nodes_meant(row, value);
    if (row.name == "map-by") return map_meant(row, value);
    // torchrun's words for what muster does anyway: one for each GPU, or each core.
    if (row.name == "ranks-per-node" && (value == "gpu" || value == "cpu" || value == "auto")) return {};
    if (row.name == "stdin" && value == "0") return {{"stdin", "rank0"}};
    if (row.name == "bind-to" && value == "package") return {{"bind-to", "socket"}};
    return {{std::string(row.name), value}};
}

}  // namespace muster
