#include "launch/settings/foreign_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

/// An option that means several words of muster's, none, or something that muster does not do.
struct foreign {
    std::string_view names;  ///< as in setting::aliases
    std::string_view tool;
    std::string_view meant;    ///< muster's option for it
    std::string_view answer;   ///< why it is refused; empty with `meant` empty: it changes nothing
    bool takes_value = false;  ///< of one that changes nothing
};

constexpr std::string_view elastic =
    "the number of ranks does not grow while they run: give one number, -n N (--max-restarts N starts again after a failure, "
    "with --min-np N "
    "on fewer nodes)";
constexpr std::string_view no_rendezvous = "muster sets MASTER_ADDR and MASTER_PORT for every rank by itself: leave it out";
constexpr std::string_view one_launcher = "muster is started once, not once a node, and knows each node's rank: leave it out";
constexpr std::string_view not_ssh = "the engine connects to the nodes: --engine mpirun --engine-args '…'";
constexpr std::string_view where_in_node = "muster plan shows what each rank gets: leave it out";

constexpr foreign foreigners[]{
    // Same meaning, other words.
    {"-pernode", "mpirun", "--ranks-per-node=1", ""},
    {"-bynode", "mpirun", "--map-by=node", ""},
    {"-byslot", "mpirun", "--map-by=slot", ""},
    {"-bind-to-core", "mpirun", "--bind-to=core", ""},
    {"-bind-to-socket", "mpirun", "--bind-to=socket", ""},
    {"-bind-to-none", "mpirun", "--bind-to=none", ""},
    // Without effect here: all variables reach the ranks anyway, MPI is taken as the program has it, and muster sees the end of a rank at once.
    {"-envall -genvall", "mpiexec", "", ""},
    {"mpi use-mpi", "horovodrun", "", ""},
    {"monitor-interval", "torchrun", "", "", true},
    // Refused, with the way out.
    {"-mca -gmca -omca -pmca -prtemca -pmixmca", "mpirun", "",
     "pass it to the engine: --engine mpirun --engine-args '--mca NAME VALUE', or set OMPI_MCA_NAME for the ranks with -x"},
    {"-am -tune", "mpirun", "", "pass it to the engine: --engine mpirun --engine-args '--tune FILE'"},
    {"-oversubscribe", "mpirun", "",
     "muster needs the number: write --slots-per-node N, or --ranks-per-gpu N where there are GPUs"},
    {"-nooversubscribe", "mpirun", "", "muster does not oversubscribe by itself: leave it out"},
    {"-overload-allowed", "mpirun", "", "use --bind-to none, or --slots-per-node N"},
    {"-allow-run-as-root", "mpirun", "",
     "muster runs as root too: leave it out (for mpirun as engine: --engine-args --allow-run-as-root)"},
    {"-report-bindings -display-map -display-allocation -display-devel-map -display-topo", "mpirun", "",
     "muster plan shows where each rank goes and why, muster hosts the allocation"},
    {"-display", "mpirun", "", "muster plan shows where each rank goes and why, muster hosts the allocation"},
    {"-output", "mpirun", "", "write --tag-output, --timestamp-output or --output-dir DIR"},
    {"-merge-stderr-to-stdout", "mpirun", "", "write 2>&1 behind muster run"},
    {"-rankfile -rf", "mpirun", "", "muster reads no rank files: --cpu-map and --gpu-map say what each local rank gets"},
    {"-cpu-set -cpu-list", "mpirun", "", "use --cpu-map, or --reserved-cpus for those that no rank may have"},
    {"-use-hwthread-cpus", "mpirun", "", "muster uses hardware threads unless --no-smt: leave it out"},
    {"-prefix -path", "mpirun", "", "set PATH and LD_LIBRARY_PATH for the ranks: -x PATH=…"},
    {"-nolocal -do-not-launch", "mpirun", "", "name the hosts to be used: -H a,b; --dry-run starts nothing"},
    {"-app -configfile", "mpirun", "", "muster runs one program: let it choose by the variable RANK"},
    {"-stdin", "mpirun", "", "rank 0 gets standard input"},
    {"-env -genv", "mpiexec", "", "write -x NAME=VALUE"},
    {"-envlist -genvlist", "mpiexec", "", "all of your variables reach the ranks: leave it out"},
    {"-envnone -genvnone", "mpiexec", "", "start muster with the variables you want: env -i …"},
    {"-launcher -rmk -bootstrap -launcher-exec -bootstrap-exec", "mpiexec", "",
     "muster chooses the engine; --engine and --scheduler force one: leave it out"},
    {"-N", "srun and mpirun", "", "it means nodes to srun and ranks a node to mpirun: write --nnodes or --ranks-per-node"},
    {"-c", "srun and mpirun", "", "it means cores a rank to srun and ranks to mpirun: write --cpus-per-rank or -n"},
    {"-G gres gpus-per-task gpus-per-node gpu-bind", "srun", "",
     "muster gives each rank one GPU of the allocation: leave it out (or --ranks-per-gpu, --gpu-visibility)"},
    {"cpu-bind", "srun", "", "use --bind-to or --cpu-map"},
    {"gloo use-gloo", "horovodrun", "", "ranks come up over MPI: leave it out (HOROVOD_CONTROLLER and the like: -x NAME=VALUE)"},
    {"jsrun use-jsrun tcp", "horovodrun", "", "muster chooses the engine, --engine forces one: leave it out"},
    {"max-np max-num-proc host-discovery-script slots reset-limit elastic-timeout blacklist-cooldown-range", "horovodrun", "",
     elastic},
    {"ssh-port ssh-identity-file", "horovodrun", "", not_ssh},
    {"disable-cache", "horovodrun", "", "muster keeps no cache of hosts: leave it out"},
    {"config-file", "horovodrun", "", "muster reads muster.toml; set HOROVOD_… with -x NAME=VALUE"},
    {"check-build", "horovodrun", "", "muster doctor says what is here"},
    {"binding-args", "horovodrun", "", "use --bind-to"},
    {"fusion-threshold-mb", "horovodrun", "", "write -x HOROVOD_FUSION_THRESHOLD=BYTES"},
    {"cycle-time-ms", "horovodrun", "", "write -x HOROVOD_CYCLE_TIME=MS"},
    {"cache-capacity", "horovodrun", "", "write -x HOROVOD_CACHE_CAPACITY=N"},
    {"timeline-filename", "horovodrun", "", "write -x HOROVOD_TIMELINE=FILE"},
    {"num-nccl-streams", "horovodrun", "", "write -x HOROVOD_NUM_NCCL_STREAMS=N"},
    {"autotune", "horovodrun", "", "write -x HOROVOD_AUTOTUNE=1"},
    {"hierarchical-allreduce", "horovodrun", "", "write -x HOROVOD_HIERARCHICAL_ALLREDUCE=1"},
    {"no-stall-check", "horovodrun", "", "write -x HOROVOD_STALL_CHECK_DISABLE=1"},
    {"log-level", "horovodrun", "", "write -x HOROVOD_LOG_LEVEL=LEVEL; muster's own log: MUSTER_LOG=LEVEL"},
    {"standalone", "torchrun", "", "no rendezvous is needed: leave it out (--nnodes 1 keeps to one node)"},
    {"rdzv-backend rdzv-endpoint rdzv-id rdzv-conf master-addr master-port local-addr", "torchrun", "", no_rendezvous},
    {"node-rank", "torchrun", "", one_launcher},
    {"start-method role", "torchrun", "", "muster starts programs, not functions: leave it out"},
    {"-m module", "torchrun", "", "write: muster run -- python3 -m MODULE"},
    {"no-python run-path", "torchrun", "", "muster adds no interpreter: write muster run -- python3 train.py"},
    {"log-dir logs-specs", "torchrun", "", "write --output-dir DIR"},
    {"-r redirects -t tee local-ranks-filter", "torchrun", "",
     "write --output-dir DIR, which keeps and shows every rank's output"},
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

/// Commands that write or submit a job count GPUs.
void refuse_number_of_nodes(std::string_view command, option_word const& parts, std::string const& word) {
    bool const counts_gpus = command == "script" || command == "submit" || command == "alloc";
    if (!counts_gpus || (parts.name != "N" && parts.name != "nodes" && parts.name != "nnodes")) return;
    throw error(errc::usage,
                fmt::format("muster {} takes no {}: the number of nodes follows from --gpus N and --gpus-per-node N; "
                            "write these",
                            command, word.substr(0, word.find('='))));
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
            if (!other->answer.empty())
                throw error(errc::usage, fmt::format("{} is an option of {}: {}", args[i].substr(0, args[i].find('=')),
                                                     other->tool, other->answer));
            if (!other->meant.empty()) own.options.emplace_back(other->meant);
            if (other->takes_value && parts.rest.empty() && i + 1 < args.size()) ++i;
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
    if (row.name == "bind-to" && value == "package") return {{"bind-to", "socket"}};
    return {{std::string(row.name), value}};
}

}  // namespace muster
