#include "launch/settings/settings_to_options.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "base/cpuset.hpp"
#include "base/process/network.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "jobscripts/each.hpp"
#include "launch/system/signals.hpp"

namespace muster {

std::optional<value_fault> check_cpus(std::string const& list) {
    try {
        if (!cpuset::from_list(list).empty()) return std::nullopt;
    } catch (parse_error const&) {
    }
    return value_fault{0, fmt::format("'{}' is no list of hardware threads; write one such as 0-7,32-39", list)};
}

std::optional<value_fault> check_ports(std::string const& range) {
    try {
        parse_port_range(range, "--ports");
        return std::nullopt;
    } catch (parse_error const& e) {
        return value_fault{0, fmt::format("'{}' is no range of ports from 1024 to 65535; write it as 40000-41000", range)};
    }
}

std::optional<value_fault> check_each(std::string const& entry) {
    auto fault = find_each_fault(entry);
    if (!fault) return std::nullopt;
    return value_fault{fault->offset, fault->offset == 0 ? fmt::format("'{}': {}", entry, fault->why) : std::move(fault->why)};
}

std::optional<value_fault> check_index(std::string const& number) {
    auto const value = parse_integer(number);
    if (value && *value >= 0 && *value < 1024) return std::nullopt;
    return value_fault{0, fmt::format("'{}' is no GPU; write its place in PCI order, from 0", number)};
}

std::optional<value_fault> check_assignment(std::string const& text) {
    if (text.empty() || text.front() == '=')
        return value_fault{0, fmt::format("'{}' names no variable; write NAME or NAME=VALUE", text)};
    return std::nullopt;
}

std::optional<int> signal_number(std::string_view name) {
    if (auto const number = parse_integer(name))
        return *number >= 1 && *number <= SIGRTMAX ? std::optional(static_cast<int>(*number)) : std::nullopt;
    if (name.starts_with("SIG")) name.remove_prefix(3);
    for (int number = 1; number < SIGRTMIN; ++number)
        if (auto const* known = signal_name(number); known != nullptr && name == known) return number;
    return std::nullopt;
}

namespace {

/// Returns the exit code for a cause of --restart-on.
std::optional<int> exit_code_of(std::string const& cause) {
    if (auto const code = parse_integer(cause))
        return *code >= 1 && *code <= 255 ? std::optional(static_cast<int>(*code)) : std::nullopt;
    auto const signal = signal_number(cause);
    return signal ? std::optional(128 + *signal) : std::nullopt;
}

}  // namespace

std::optional<value_fault> check_restart_cause(std::string const& word) {
    if (word == "node" || exit_code_of(word)) return std::nullopt;
    return value_fault{
        0, fmt::format("'{}' is no cause of a failure; write an exit code from 1 to 255, a signal (KILL) or node", word)};
}

std::optional<value_fault> check_seconds(std::string const& number) {
    auto const value = parse_integer(number);
    if (value && *value >= 1 && *value <= 3600) return std::nullopt;
    return value_fault{0, fmt::format("'{}' is no number of seconds from 1 to 3600; write LO,HI, such as 5,300", number)};
}

std::optional<value_fault> check_exit_code(std::string const& number) {
    auto const code = parse_integer(number);
    if (code && *code >= 0 && *code <= 255) return std::nullopt;
    return value_fault{0, fmt::format("'{}' is no exit code; write one from 0 to 255", number)};
}

restart_policy make_restart_policy(int most, std::vector<std::string> const& causes) {
    restart_policy policy{.most = most};
    for (auto const& cause : causes) {
        policy.on_node = policy.on_node || cause == "node";
        if (auto const code = exit_code_of(cause)) policy.codes.push_back(*code);
    }
    return policy;
}

std::optional<value_fault> check_early_signal(std::string const& text) {
    auto const at = text.find('@');
    if (at == std::string::npos)
        return value_fault{0, fmt::format("'{}' has no time; write SIGNAL@TIME, such as USR1@120 or TERM@5min", text)};
    if (!signal_number(std::string_view(text).substr(0, at)))
        return value_fault{0, fmt::format("there is no signal '{}'; write USR1, TERM or a number", text.substr(0, at))};
    try {
        parse_duration(text.substr(at + 1));
    } catch (parse_error const& e) {
        return value_fault{at + e.column(), "no time follows the @; write SIGNAL@TIME, such as USR1@120 or TERM@5min"};
    }
    return std::nullopt;
}

early_signal parse_early_signal(std::string const& text, std::string_view origin) {
    if (auto const fault = check_early_signal(text)) throw_fault(origin, text, *fault);
    auto const at = text.find('@');
    return {*signal_number(std::string_view(text).substr(0, at)), parse_duration(text.substr(at + 1), origin)};
}

scheduler_kind parse_scheduler_kind(std::string_view word) {
    constexpr scheduler_kind kinds[]{scheduler_kind::slurm, scheduler_kind::pbs,      scheduler_kind::cobalt, scheduler_kind::lsf,
                                     scheduler_kind::flux,  scheduler_kind::hostfile, scheduler_kind::local};
    std::vector<std::string> names;
    for (auto const kind : kinds) {
        if (to_string(kind) == word) return kind;
        names.emplace_back(to_string(kind));
    }
    throw_error(errc::usage, "--scheduler: '{}' is not one of {}", word, join(names, ", "));
}

placement_request make_placement_request(settings_result const& given) {
    placement_request wanted;
    wanted.ranks = given.integer("ranks");
    wanted.nodes = given.integer("nnodes");
    wanted.ranks_per_node = given.integer("ranks-per-node");
    wanted.map_by = parse_map_policy(given.text("map-by"));
    wanted.slots_per_node = given.integer("slots-per-node");
    wanted.ranks_per_gpu = given.integer("ranks-per-gpu").value_or(wanted.ranks_per_gpu);
    wanted.bind_to = parse_bind_policy(given.text("bind-to"));
    wanted.cpus_per_rank = given.integer("cpus-per-rank");
    wanted.gpus_seen = parse_gpu_visibility(given.text("gpu-visibility"));
    wanted.smt = given.flag("smt");
    wanted.cpu_map = given.list("cpu-map");
    for (auto const& place : given.list("gpu-map")) wanted.gpu_map.push_back(static_cast<int>(*parse_integer(place)));
    wanted.reserved_cpus = given.text("reserved-cpus");
    return wanted;
}

allocation_choice make_allocation_choice(settings_result const& given) {
    allocation_choice choice;
    // The strongest source of these three settings counts: -H on the command line overrides a hostfile in muster.toml.
    auto const strongest = std::max({given.get("scheduler").from, given.get("hostfile").from, given.get("hosts").from});
    auto const counts = [&](std::string_view name) { return given.given(name) && given.get(name).from == strongest; };
    if (counts("scheduler")) choice.scheduler = parse_scheduler_kind(given.text("scheduler"));
    if (counts("hostfile")) choice.hostfile = given.text("hostfile");
    if (counts("hosts")) choice.hosts = given.text("hosts");
    return choice;
}

namespace {

/// Returns nothing for 0, which means no limit, so that an option can undo a file's. `usual` is the default.
std::optional<duration> time_limit(settings_result const& given, std::string_view name, std::optional<duration> usual) {
    auto const limit = given.time(name);
    if (!limit) return usual;
    return limit->count() > 0 ? limit : std::nullopt;
}

/// Refuses options without a meaning if no generation follows another.
void check_restarts(settings_result const& given, run_options const& options) {
    for (std::string_view const name : {"restart-on", "must-grow"})
        if (options.restarts.most == 0 && given.get(name).from == setting_layer::option &&
            !(name == "must-grow" && !options.lives_file.empty()))
            throw_error(errc::usage, "--{} is for runs that start again after a failure: give --max-restarts N as well", name);
    if (!options.is_elastic() && given.get("spares").from == setting_layer::option)
        throw error(errc::usage, "--spares is for runs that go on after a failure: give --max-restarts N or --min-np N as well");
    if (options.warm_spares && options.spares == 0 && given.get("warm-spares").from == setting_layer::option)
        throw error(errc::usage, "--warm-spares starts the processes of --spares N: give that as well");
    if (!options.is_elastic() && given.get("keep-state").from == setting_layer::option)
        throw error(errc::usage,
                    "--keep-state is for runs that go on after a failure: give --max-restarts N or --min-np N as well");
    if (options.is_elastic() && !options.engine.empty() && options.engine != "embedded" && options.engine != "remote")
        throw_error(errc::usage, "{}: the engine {} cannot start ranks again; leave --engine out, or give --engine remote",
                    options.restarts.most > 0 ? "--max-restarts" : "--min-np", options.engine);
    for (auto const* name : {"max-np", "blacklist-cooldown-range", "elastic-timeout"})
        if (!options.discovery.given() && given.get(name).from == setting_layer::option &&
            !(name == std::string_view("blacklist-cooldown-range") && options.warm_spares))
            throw_error(errc::usage, "--{} is for runs whose hosts come and go: give --host-discovery-script CMD as well", name);
    if (options.discovery.given() && (options.spares > 0 || !options.from.hosts.empty() || !options.from.hostfile.empty()))
        throw error(errc::usage, "--host-discovery-script names the hosts of the run: leave out -H, host files and --spares");
    if (options.most_ranks && *options.most_ranks < std::max(options.least_ranks.value_or(1), options.place.ranks.value_or(1)))
        throw_error(errc::usage, "--max-np {} is less than -n or --min-np", *options.most_ranks);
    if (options.cool_down.most_s < options.cool_down.least_s)
        throw_error(errc::usage, "--blacklist-cooldown-range {:g},{:g}: the second number must not be less than the first",
                    options.cool_down.least_s, options.cool_down.most_s);
    if (options.least_ranks && options.place.ranks && *options.least_ranks > *options.place.ranks)
        throw_error(errc::usage, "--min-np {} is more than -n {}", *options.least_ranks, *options.place.ranks);
}

/// Reads the options of a run whose hosts come and go: it restarts, without --max-restarts any number of times.
void read_discovery(settings_result const& given, run_options& options) {
    constexpr int no_limit = 1'000'000;
    options.restarts.resets = given.integer("reset-limit");
    options.most_ranks = given.integer("max-np");
    options.elastic_timeout = time_limit(given, "elastic-timeout", options.elastic_timeout);
    auto const range = given.list("blacklist-cooldown-range");
    if (!range.empty() && range.size() != 2)
        throw error(errc::usage, "--blacklist-cooldown-range takes two numbers of seconds; write LO,HI, such as 5,300");
    if (!range.empty())
        options.cool_down = {static_cast<double>(*parse_integer(range[0])), static_cast<double>(*parse_integer(range[1]))};
    auto const script = given.text("host-discovery-script");
    if (script.empty()) return;
    options.discovery = {script, options.place.slots_per_node.value_or(1)};
    options.place.slots_per_node = std::nullopt;  // it is now the slots of hosts
    if (!given.given("max-restarts")) options.restarts.most = no_limit;
}

}  // namespace

run_options make_run_options(settings_result const& given) {
    if (given.command.empty() || given.command.front().empty())
        throw error(errc::usage, "the program is missing; write: muster run [options] -- program args…");
    run_options options;
    options.place = make_placement_request(given);
    options.from = make_allocation_choice(given);
    options.engine = given.text("engine");
    options.engine_args = given.list("engine-args");
    options.engine_args_typed = !options.engine_args.empty() && given.get("engine-args").from == setting_layer::option;
    options.network_interface = given.text("network-interface");
    options.ports = given.text("ports");
    options.login_nodes = given.list("login-nodes");
    options.remote_shell = given.text("remote-shell");
    options.pass_key = given.text("pass-key");
    options.nested = given.flag("nested");
    options.dry_run = given.flag("dry-run");
    options.print_env = given.integer("print-env");
    options.preflight = given.flag("preflight");
    options.exclude_bad_nodes = given.flag("exclude-bad-nodes");
    options.verbose = given.flag("verbose");
    options.command = given.command;
    options.exports = given.list("env");
    options.unexported = given.list("env-exclude");
    options.working_dir = given.text("wd");
    options.input = given.text("stdin") != "none";
    options.output_dir = given.text("output-dir");
    options.tag_output = given.flag("tag-output");
    options.timestamp_output = given.flag("timestamp-output");
    for (auto const& entry : given.list("show-ranks"))
        options.shown_ranks.push_back(static_cast<int>(parse_integer(entry).value_or(0)));
    options.as_horovod = given.flag("as-horovod");
    options.allow_singletons = given.flag("allow-singletons");
    options.quiet = given.flag("quiet");
    options.timeout = time_limit(given, "timeout", options.timeout);
    options.start_timeout = time_limit(given, "start-timeout", options.start_timeout);
    options.on_hang = given.text("on-hang");
    options.idle_timeout = time_limit(given, "idle-timeout", options.idle_timeout);
    options.restarts = make_restart_policy(given.integer("max-restarts").value_or(0), given.list("restart-on"));
    options.spares = given.integer("spares").value_or(0);
    options.warm_spares = given.flag("warm-spares");
    options.keep_state = !given.text("keep-state").empty();
    options.keep_at_neighbour = given.text("keep-state") == "node,neighbour";
    options.least_ranks = given.integer("min-np");
    options.must_grow = given.text("must-grow");
    read_discovery(given, options);
    options.success_file = given.text("success-file");
    options.lives_file = given.text("lives-file");
    options.requeue_saved = given.flag("requeue-saved");
    options.saved_code = given.integer("saved-code").value_or(options.saved_code);
    check_restarts(given, options);
    if (auto const early = given.text("signal-before-end"); !early.empty()) options.signal_before_end = parse_early_signal(early);
    options.grace = given.time("grace").value_or(options.grace);
    options.metrics_dir = given.text("metrics-dir");
    options.sample = given.time("sample").value_or(options.sample);
    options.heartbeat = given.time("heartbeat").value_or(options.heartbeat);
    return options;
}

std::vector<std::string> words_of_setting(setting const& row, std::vector<std::string> const& entries) {
    auto const name = fmt::format("--{}", row.name);
    if (row.kind == setting_kind::flag) {
        auto const value = entries.empty() ? std::string() : entries.front();
        bool const on = value == "true" || value == "yes" || value == "on" || value == "1";
        return {on ? name : fmt::format("--no-{}", row.name)};
    }
    if (row.kind == setting_kind::list && row.separator == ' ') return {name, shell_join(entries)};
    if (row.kind == setting_kind::list && row.separator != 0) return {name, join(entries, std::string(1, row.separator))};
    std::vector<std::string> words;
    for (auto const& entry : entries) words.insert(words.end(), {name, entry});
    return words;
}

}  // namespace muster
