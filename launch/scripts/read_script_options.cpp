// Reads the options of muster script.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/scheduler/flux.hpp"
#include "launch/scripts/script_plan.hpp"
#include "launch/settings/settings_to_options.hpp"

namespace muster {

namespace {

/// Refuses a bare number, which some schedulers read as minutes and others as seconds.
std::optional<duration> walltime_of(settings_result const& given) {
    if (!given.given("time")) return std::nullopt;
    auto const text = given.text("time");
    if (parse_real(trim(text)))
        throw_error(errc::usage, "--time: '{}' has no unit; write {}min, {}h or HH:MM:SS", text, text, text);
    try {
        return parse_duration(text, "--time");
    } catch (parse_error const& e) {
        throw error(errc::usage, e.what());
    }
}

std::vector<int> sweep_of(settings_result const& given) {
    std::vector<int> ranks;
    for (auto const& entry : given.list("sweep")) {
        auto const number = parse_integer(entry);
        if (!number || *number < 1 || *number > 1'000'000)
            throw_error(errc::usage, "--sweep: '{}' is no number of ranks; give numbers such as 1,2,4,8", entry);
        ranks.push_back(static_cast<int>(*number));
    }
    return ranks;
}

std::pair<std::string, std::string> assignment_of(std::string const& entry, std::string const& spelled) {
    auto const equals = entry.find('=');
    if (equals == std::string::npos)
        throw_error(errc::usage, "--env {0}: a job's variable needs its value; give --env {0}=VALUE{1}", entry,
                    spelled == "-x" ? fmt::format(" (sbatch's -x: --sbatch '--exclude={}')", entry) : "");
    return {entry.substr(0, equals), entry.substr(equals + 1)};
}

/// Splits at the last colon: a source may contain one, but a folder of a node hardly ever does.
std::pair<std::string, std::string> copy_of(std::string const& entry) {
    auto const colon = entry.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == entry.size())
        throw_error(errc::usage, "--stage-in: '{}' has no SRC and DST; write it as data.h5:/tmp/data", entry);
    return {entry.substr(0, colon), entry.substr(colon + 1)};
}

/// Reads "any:12,13": how jobs must end, and which.
void read_after(std::string const& text, script_options& options) {
    std::string_view ids = text;
    for (std::string_view const kind : {"ok", "any", "notok"})
        if (ids.starts_with(std::string(kind) + ":") || ids.starts_with(fmt::format("after{}:", kind))) {
            options.after_kind = kind;
            ids.remove_prefix(ids.find(':') + 1);
            break;
        }
    for (auto const id : split(ids, ',')) {
        options.after.push_back(plain_flux_id(trim(id)));
        if (options.after.back().empty())
            throw_error(errc::usage, "--after '{}': the number of a job is missing; give one or several, such as 12 or any:12,13",
                        text);
    }
}

void read_preparations(script_options& options, settings_result const& given) {
    options.modules = given.list("module");
    options.setup = given.list("setup");
    options.venv = given.text("venv");
    options.conda = given.text("conda");
    for (auto const& entry : given.list("env")) options.environment.push_back(assignment_of(entry, given.get("env").where));
    options.container = given.text("container");
    options.container_runtime = given.text("container-runtime");
    if (given.given("container-args")) options.container_args = given.list("container-args");
    for (auto const& entry : given.list("stage-in")) options.stage_in.push_back(copy_of(entry));
    options.artifacts = given.text("artifacts");
    options.artifacts_every = given.time("artifacts-every").value_or(duration(600));
}

/// Returns what was asked for this job: settings for runs in general (a variable, a settings file) do not count.
std::optional<int> asked_of_job(settings_result const& given, std::string_view name) {
    auto const from = given.get(name).from;
    return from == setting_layer::option || from == setting_layer::job_file ? given.integer(name) : std::nullopt;
}

void read_shape(script_options& options, settings_result const& given, int largest) {
    auto const gpus = given.integer("gpus");
    auto const ranks = asked_of_job(given, "ranks");
    bool const either = given.flag("once") && gpus && ranks == gpus && largest == 0;
    if (gpus && ranks && !either)
        throw_error(errc::usage,
                    "--gpus {} means {}, one for each GPU, and --ranks is for ranks without GPUs; leave out one of them", *gpus,
                    counted(*gpus, "rank"));
    if (!gpus && !ranks && largest == 0)
        throw error(
            errc::usage,
            "--gpus is missing; give the number of GPUs, which is the number of ranks, or --ranks N for ranks without GPUs");
    auto const* const name = gpus ? "gpus" : "ranks";
    auto const most = gpus ? gpus : ranks;
    bool const sweep_holds = given.get("sweep").from > given.get(name).from;
    if (most && *most < largest && !sweep_holds)
        throw_error(errc::usage, "--sweep asks for {0} ranks and --{1} for {2}; give --{1} {0}", largest, name, *most);
    if (either)
        options.gpus = options.ranks = *gpus;
    else if (most)
        (ranks ? options.ranks : options.gpus) = sweep_holds ? std::max(*most, largest) : *most;
    options.gpus_per_node = given.integer("gpus-per-node");
    options.cpus_per_gpu = given.integer("cpus-per-gpu");
    options.ranks_per_node = asked_of_job(given, "ranks-per-node");
    options.cpus_per_rank = asked_of_job(given, "cpus-per-rank");
    if (ranks && !gpus && (options.gpus_per_node || options.cpus_per_gpu))
        throw error(errc::usage,
                    "--gpus-per-node and --cpus-per-gpu are for GPUs; with --ranks give --ranks-per-node and --cpus-per-rank");
}

void read_options(script_options& options, settings_result const& given) {
    options.site = given.text("site");
    if (options.site.empty())
        throw error(errc::usage,
                    "--site is missing; `muster site init` describes the cluster that you are on; or give a site, such as "
                    "generic-slurm, or a site file");
    options.sweep = sweep_of(given);
    auto const largest = options.sweep.empty() ? 0 : *std::ranges::max_element(options.sweep);
    read_shape(options, given, largest);
    options.walltime = walltime_of(given);
    options.account = given.text("account");
    options.queue = given.text("queue");
    options.queue_word = given.get("queue").where;
    options.job_name = given.text("job-name");
    options.constraint = given.text("constraint");
    options.filesystems = given.text("filesystems");
    options.memory = given.text("mem");
    options.sbatch = given.list("sbatch");
    options.qsub = given.list("qsub");
    options.network_environment = given.flag("network-env");
    options.check_limits = given.flag("limits");
    options.once = given.flag("once");
    options.muster = given.text("muster");
    options.template_file = given.text("template");
    options.run_words = run_words(given);
    options.spares = given.integer("spares").value_or(0);
    // A restart on the remaining nodes has no room for all ranks, so Slurm had better requeue the job.
    options.outlives_nodes = options.spares > 0 || given.given("min-np");
    options.command = given.command;
    options.array = given.text("array");
    options.each = given.list("each");
    if (given.given("after")) read_after(given.text("after"), options);
    options.chain = given.integer("chain").value_or(0);
    options.requeue = given.flag("requeue");
    options.early_signal = given.text("signal-before-end");
    if (given.given("saved-code")) options.saved_code = given.integer("saved-code");
    options.must_grow = given.text("must-grow");
    read_preparations(options, given);
}

}  // namespace

std::vector<std::string> run_words(settings_result const& given) {
    std::vector<std::string> words;
    for (auto const& [name, value] : given.values) {
        auto const* row = find_setting(name, "run");
        bool const of_job = value.from == setting_layer::job_file || value.from == setting_layer::option;
        if (!of_job || row == nullptr || !row->is_configurable() || is_listed("submit", *row)) continue;
        auto const own = words_of_setting(*row, value.entries);
        words.insert(words.end(), own.begin(), own.end());
    }
    return words;
}

void throw_at_place(error const& fault, std::map<std::string, std::string> const& places) {
    std::string const message = fault.what();
    if (!message.starts_with("--")) throw;
    auto const found = places.find(message.substr(2, message.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", 2) - 2));
    if (found == places.end()) throw;
    throw_error(fault.code(), "{}: {}", found->second, message);
}

script_options make_script_options(settings_result const& given) {
    script_options options;
    for (auto const& [name, value] : given.values)
        if (value.from != setting_layer::option && value.from != setting_layer::built_in) options.places[name] = value.where;
    try {
        read_options(options, given);
    } catch (error const& e) {
        throw_at_place(e, options.places);
    }
    return options;
}

}  // namespace muster
