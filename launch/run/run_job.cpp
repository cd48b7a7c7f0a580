#include "launch/run/run_job.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <optional>

#include "base/command/print_note.hpp"
#include "base/process/process.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/engine/engine_job.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/placement/job_layout.hpp"
#include "launch/placement/job_lease.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "launch/record/life_record.hpp"
#include "launch/record/run_record.hpp"
#include "launch/run/gather_hosts.hpp"
#include "launch/run/next_life.hpp"
#include "launch/run/prepare_run.hpp"
#include "launch/run/run_embedded.hpp"
#include "launch/run/run_on_engine.hpp"
#include "launch/run/stdin_forwarder.hpp"
#include "launch/samples/remarks/odd_nodes.hpp"
#include "launch/samples/remarks/run_remarks.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/settings/parts.hpp"
#include "launch/system/network.hpp"
#include "pmix/member_message.hpp"

namespace muster {

namespace {

/// Returns how many of the ranks' nodes are not this process' node.
int count_other_nodes(allocation const& given, mapping const& map) {
    if (given.scheduler == scheduler_kind::local) return 0;
    int others = 0;
    for (std::size_t n = 0; n < given.nodes.size(); ++n)
        if (map.ranks_per_node[n] > 0 && !is_this_host(given.nodes[n])) ++others;
    return others;
}

/// … or that processes wait on, which are out of this one's reach.
int count_other_nodes(run_plan const& run) {
    return count_other_nodes(run.given, run.map) + run.waiting.nodes_used();
}

/// The signal comes before the job's end alone: --timeout is a limit of the run's, at which it is ended.
void note_no_signal(run_options const& options, std::optional<std::chrono::system_clock::time_point> ends_at) {
    if (!ends_at)
        print_note("--signal-before-end: the end of the job is not known here, so no signal is sent");
    else if (options.timeout &&
             std::chrono::system_clock::now() + *options.timeout < *ends_at - options.signal_before_end->before)
        print_note(
            "--signal-before-end: --timeout {} ends the run before the signal is due, which counts from the end of the job; "
            "leave --timeout out",
            format_duration(*options.timeout));
}

bool is_host_like(std::string const& pattern) {
    return ::fnmatch(pattern.c_str(), host_name().c_str(), 0) == 0 ||
           ::fnmatch(pattern.c_str(), short_host_name().c_str(), 0) == 0;
}

/// Throws errc::placement where a setting calls this machine a login node, and the ranks would run on it outside of a job.
void refuse_login_node(run_options const& options, allocation const& given) {
    auto const& from = options.from;
    if (given.scheduler != scheduler_kind::local || from.scheduler || !from.hosts.empty() || !from.hostfile.empty()) return;
    if (options.dry_run || options.print_env) return;
    auto const pattern = std::ranges::find_if(options.login_nodes, is_host_like);
    if (pattern == options.login_nodes.end()) return;
    auto const said = options.asked.find("login-nodes");
    throw_error(errc::placement,
                "{} is a login node ({}login-nodes has {}), and this shell is in no job, so no ranks start here; get nodes by "
                "muster submit or muster alloc, or start muster run in a job script",
                short_host_name(), said == options.asked.end() ? "" : said->second.where + ": ", *pattern);
}

/// The allocation as the scheduler gives it. Of one node that is this one, nothing knows more than the node itself.
allocation find_allocation(run_options const& options, run_life const& life, scheduler_sources const& sources) {
    std::vector<std::string> tried;
    auto given = read_allocation(sources, options.from, &tried);
    leave_out_lost(given, life);
    if (given.nodes.size() == 1 && !given.nodes[0].gpus && is_this_host(given.nodes[0])) {
        given.nodes[0].gpus = sources.this_node().gpus;
        given.nodes[0].gpus_counted = true;
    }
    if (options.verbose)
        for (auto const& line : tried) fmt::print(stderr, "muster: {}\n", line);
    refuse_login_node(options, given);
    bool const chosen = options.from.scheduler || !options.from.hosts.empty() || !options.from.hostfile.empty();
    if (auto const cluster = cluster_of(sources.variables);
        given.scheduler == scheduler_kind::local && !chosen && !cluster.empty() && !options.quiet)
        print_note(
            "this shell is in no job of this {} cluster, so the ranks run here, on {}; nodes come from muster submit, muster "
            "alloc, or a job script (--scheduler local: this machine is meant)",
            cluster, short_host_name());
    if (options.signal_before_end && !options.quiet) note_no_signal(options, given.ends_at);
    return given;
}

/// Takes out what another job has left.
void correct(environment& variables, allocation const& given) {
    for (auto const& [name, value] : given.corrections)
        if (value)
            variables.set(name, *value);
        else
            variables.unset(name);
}

/// The number that %j stands for; outside a job this process' own.
std::string job_number(run_plan const& run) {
    return run.given.job_id.empty() ? std::to_string(::getpid()) : run.given.job_id;
}

/// The folder of --output-dir, without what a former run with more ranks left in it.
std::string make_output_dir(run_plan const& run) {
    if (run.options.output_dir.empty() || run.options.dry_run || run.options.print_env) return {};
    if (!run.life.is_first()) return run.life.output_dir;
    auto const path = claim_run_folder(run.options.output_dir, job_number(run));
    clear_former_generations(path);
    int const cleared = clear_former_ranks(path, run.map.world_size());
    if (cleared > 0 && !run.options.quiet)
        print_note("--output-dir {}: removed the output of {} of a former run, which had more", path,
                   count_of_ranks(static_cast<std::size_t>(cleared)));
    return path;
}

/// Runs, and tells `conclude` how that ended, also where no rank was started.
template <typename Run, typename Conclude>
int concluded(run_outcome& outcome, Run const& start, Conclude const& conclude) {
    int code = 0;
    try {
        code = start();
    } catch (program_error const& e) {
        outcome.cause = e.what();
        conclude(e.exit_status());
        throw;
    } catch (error const& e) {
        outcome.cause = e.what();
        conclude(exit_code(e.code()));
        throw;
    }
    conclude(code);
    return code;
}

/// Runs of which name share what the scheduler gave: those of a job, or of one of its steps, each of which has its part. Empty: no others are to be
/// looked for, as in a rank, to which the run around it has given its part.
std::string leases_name(run_plan const& run) {
    if (!run.given.fixed || run.given.job_id.empty() || run.options.dry_run || run.options.print_env) return {};
    if (run.inherited.has("MUSTER_RANK")) return {};
    return run.given.job_id + "." + run.inherited.get_or("SLURM_STEP_ID", "");
}

/// Returns the nodes with ranks or waiting processes.
std::vector<std::string> nodes_of_ranks(run_plan const& run) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < run.map.ranks_per_node.size(); ++i)
        if (run.map.ranks_per_node[i] > 0) names.push_back(run.given.nodes.at(i).name);
    for (auto const& place : run.waiting.places())
        if (place.local_rank == 0) names.push_back(run.given.nodes.at(static_cast<std::size_t>(place.node)).name);
    return names;
}

/// The places behind those of the ranks are for spares.
local_placement set_apart(local_placement where, mapping const& ranks) {
    auto const first = where.bindings.begin() + ranks.world_size();
    where.spares.assign(first, where.bindings.end());
    where.bindings.erase(first, where.bindings.end());
    where.map = ranks;
    return where;
}

/// This process alone can start waiting processes next to ranks on one node; on their own nodes, agents do. A restart on the only
/// node left goes without them.
void check_warm_spares(run_plan const& run) {
    auto const& nodes = run.given.nodes;
    auto const& engine = run.options.engine;
    if (run.options.waiting_spares() == 0 || nodes.size() > 1 || !run.life.is_first()) return;
    if ((engine.empty() || engine == "embedded") && (run.given.scheduler == scheduler_kind::local || is_this_host(nodes.front())))
        return;
    throw_error(errc::unavailable,
                "--warm-spares: on one node spares wait where muster run itself is, on {}, and this run has {}: start it there, "
                "or give further nodes, of which the last --spares N have the spares",
                short_host_name(), engine.empty() || engine == "embedded" ? nodes.front().name : "--engine " + engine);
}

void check_number_of_spares(run_plan const& run) {
    int const ranks = run.map.world_size(), spares = run.waiting.world_size();
    if (spares == 0 || ranks + spares <= static_cast<int>(elastic::most_over_nodes)) return;
    throw_error(errc::placement,
                "--warm-spares: {} and {} are more than the {} processes of which some can be replaced over several nodes; use "
                "fewer, or leave the option out",
                count_of_ranks(static_cast<std::size_t>(ranks)), count_of_spares(static_cast<std::size_t>(spares)),
                elastic::most_over_nodes);
}

/// Returns how many processes wait next to the ranks of a node: at most the run's free slots there, as after a restart on the only node left.
int waiting_beside(run_plan const& run, std::string const& node, int ranks) {
    auto const slots = std::ranges::count_if(run.life.pool, [&](slot const& one) { return one.host == node; });
    return std::clamp(static_cast<int>(slots) - ranks, 0, run.options.waiting_spares());
}

/// The cores and GPUs of the ranks, all of which are on this node.
local_placement place_on_this_node(run_plan const& run, topology machine) {
    auto const& counts = run.map.ranks_per_node;
    auto const here = std::ranges::find_if(counts, [](int n) { return n > 0; });
    auto const place =
        with_share(run.options.place, run.given, run.given.nodes.at(static_cast<std::size_t>(here - counts.begin())));
    if (auto const note = share_note(machine, place); !note.empty() && !run.options.quiet) print_note(note);
    auto map = run.map;
    auto& most = map.ranks_per_node[static_cast<std::size_t>(here - counts.begin())];
    most += waiting_beside(run, run.given.nodes.at(static_cast<std::size_t>(here - counts.begin())).name, most);
    auto const name = leases_name(run);
    if (name.empty()) return set_apart(place_here(std::move(machine), run.given, map, place), run.map);
    job_leases const leases(name);
    auto const nodes = nodes_of_ranks(run);
    auto beside = place_beside(std::move(machine), place, leases.others(run.session_dir, nodes), map.world_size(),
                               run.given.nodes.size() > 1);
    if (!beside.note.empty() && !run.options.quiet) print_note(beside.note);
    auto where = place_here(std::move(beside.machine), run.given, map, beside.wanted);
    leases.take(run.session_dir, nodes, where.bindings);
    return set_apart(std::move(where), run.map);
}

/// Slurm ends such a job at once, and the judge says why; PBS does it minutes later, when nothing here can say anything.
void note_lost_nodes(run_plan const& run) {
    auto const& options = run.options;
    bool const goes_on = options.is_elastic() && (options.spares > 0 || options.least_ranks);
    if (!run.given.ends_with_node || !goes_on || !run.life.is_first() || options.quiet) return;
    print_note(
        "PBS kills this job some minutes after it has lost a host, though the run could go on without it; ask for the job with "
        "qsub -W tolerate_node_failures=all, as muster submit does");
}

/// Over several nodes each node finds its own GPUs and cores, and cannot know of other runs.
void note_other_runs(run_plan const& run) {
    auto const name = leases_name(run);
    if (name.empty()) return;
    job_leases const leases(name);
    auto const nodes = nodes_of_ranks(run);
    if (leases.others(run.session_dir, nodes).runs > 0 && !run.options.quiet)
        print_note(
            "another run of this job is going on, and both begin at the first GPUs and cores of each node; give each run its own "
            "nodes by -H, or GPUs by CUDA_VISIBLE_DEVICES");
    leases.take_wide(run.session_dir, nodes);
}

/// Else nothing would show.
void check_shown_ranks(run_options const& options, mapping const& map) {
    if (options.is_elastic()) return;
    for (int const rank : options.shown_ranks)
        if (rank >= map.world_size())
            throw_error(errc::usage, "--show-ranks {}: there is no such rank: they are 0 to {}", rank, map.world_size() - 1);
}

/// Says what is worth saying about the run, and remembers nodes that were at fault.
void note_remarks(run_context const& run) {
    auto& outcome = run.outcome;
    outcome.remarks = remarks_on(outcome.samples);
    std::vector<odd_node> odd;
    auto const add = [&](std::string const& host, std::string reason) {
        odd.push_back(
            {std::string(short_name(host)), run.given.cluster, run.given.job_id, std::move(reason), std::time(nullptr)});
    };
    for (auto const& host : run.life.lost_hosts) add(host, "was lost");
    for (auto const& host : outcome.lost_hosts) add(host, "was lost");
    for (auto const& remark : outcome.remarks)
        if (!remark.host.empty() &&
            std::ranges::none_of(odd, [&](odd_node const& one) { return one.host == short_name(remark.host); }))
            add(remark.host, remark.of_host);
    if (outcome.remarks.size() > most_remarks) outcome.remarks.resize(most_remarks);
    for (auto const& remark : outcome.remarks)
        if (!run.options.quiet) print_note(remark.text);
    if (run.given.scheduler != scheduler_kind::local) remember_odd_nodes(run.inherited, odd);
}

run_plan map_all(run_plan run) {
    if (run.options.is_elastic()) return map_generation(std::move(run));
    run.map = map_ranks(run.given, run.options.place);
    return run;
}

/// The nodes of the run. Takes out of `inherited`, to which `sources` refer, what another job has left there.
run_plan find_nodes(run_options const& asked, environment& inherited, scheduler_sources const& sources,
                    launcher_start const& start) {
    auto life = parse_life(start.life);
    if (life.began_s < 0) life.began_s = seconds_now();
    gathered_hosts found;
    if (asked.discovery.given())
        found = gather_hosts(asked, inherited, std::move(life));
    else
        found = {find_allocation(asked, life, sources), life, std::nullopt};
    correct(inherited, found.given);
    run_plan run{asked, inherited, sources, start.session_dir, start.guardian_fd, std::move(found.given)};
    run.life = std::move(found.life);
    if (found.ranks) run.options.place.ranks = found.ranks;
    return run;
}

/// Returns the allocation with what only its nodes know.
allocation ask_nodes(run_plan const& run, part_functions const& parts) {
    auto const& options = run.options;
    bool const unknown =
        options.engine != "embedded" && must_ask_nodes(run.given, options.place);  // embedded takes none elsewhere
    if (!options.preflight && !options.exclude_bad_nodes && !unknown) return run.given;
    if (parts.check_nodes == nullptr)
        throw error(
            errc::unavailable,
            absent_part(some_tell_gpus(run.given) ? "cannot tell how many GPUs some of the nodes have, without --slots-per-node"
                                                  : "cannot tell how many GPUs the nodes have, without -n or --ranks-per-node",
                        "preflight"));
    return parts.check_nodes(run, unknown);
}

/// Tells, and refuses, what the places of the ranks bring with them.
void check_places(run_plan const& run, int others) {
    auto const& options = run.options;
    check_number_of_spares(run);
    check_shown_ranks(options, run.map);
    if (!options.quiet && run.life.is_first())
        for (auto const& note : notes_on_layout(run.given, options.place, run.map, run.inherited)) print_note(note);
    if (options.engine == "embedded" && others > 0)
        throw_error(
            errc::unavailable,
            "--engine embedded starts ranks on this node ({}) only, and {} of the {} nodes {} elsewhere; leave the option out",
            short_host_name(), others, run.map.nodes_used(), others == 1 ? "is" : "are");
    if (!options.input)
        close_input();
    else if (others > 0 && !options.quiet && !options.dry_run && !options.print_env && input_is_shared())
        print_note(
            "standard input goes to rank 0 as a whole, so a loop that reads a list from it ends after this run; give --stdin "
            "none, or < /dev/null");
}

}  // namespace

int run_job(run_options const& asked, environment const& all_variables, launcher_start const& start,
            part_functions const& parts) {
    double const began_s = seconds_now();
    bool const starts = !asked.dry_run && !asked.print_env;
    environment inherited = all_variables;
    std::optional<topology> machine;  // looked at once, where it is needed
    hwloc_handle hwloc;
    auto const look_here = [&]() -> topology& {
        if (!machine) machine = discover_here(inherited, &hwloc);
        return *machine;
    };
    auto const this_node = [&]() -> node { return node_of(look_here(), asked.place); };
    auto const sources = telling_sources(real_sources(inherited, this_node), [&asked](std::string const& what) {
        if (!asked.quiet) print_note(what);
    });
    auto found = find_nodes(asked, inherited, sources, start);
    end_phase("allocation read, node looked at");
    check_warm_spares(found);
    if (starts) found.given = ask_nodes(found, parts);
    auto const everywhere = found.given;
    auto plan = map_all(std::move(found));
    int const others = count_other_nodes(plan);
    check_places(plan, others);
    if (start.kept != nullptr && starts) plan.kept = start.kept->make_ready(plan, everywhere, others > 0);
    plan.life = begin_life(plan);
    auto prepared = prepare_run(plan);
    auto const folder = plan.life.output_dir = make_output_dir(plan);
    plan.options.output_dir = plan.life.is_first() || folder.empty() ? folder : generation_folder(folder, plan.life.now.number);
    std::optional<discovery> asks_hosts;
    if (asked.discovery.given() && starts) asks_hosts.emplace(asked.discovery, inherited);
    run_outcome outcome;
    outcome.hosts = plan.life.hosts;
    run_context const run{std::move(plan), outcome, asks_hosts ? &*asks_hosts : nullptr};
    auto const& options = run.options;
    run_record record(folder, run, prepared.sent_variables, prepared.working_dir);
    end_phase("ranks mapped, run prepared");
    auto const begin = [&] {
        if (others > 0 || (!options.engine.empty() && options.engine != "embedded")) {
            note_other_runs(run);
            note_lost_nodes(run);
            record.begin();
            return run_on_engine(run, prepared);
        }
        if (options.engine_args_typed && !options.quiet)
            print_note("--engine-args (--mpi-args) change nothing: muster itself starts the ranks of one node");
        auto const where = place_on_this_node(run, std::move(look_here()));
        for (auto& who : prepared.ranks) who.host = where.machine.host;
        record.begin(&where);
        return run_embedded(run, prepared, where, hwloc);
    };
    return concluded(outcome, begin, [&](int code) {
        auto const next = options.is_elastic() ? follow_up(run, code, began_s) : generation_follow_up{};
        if (next.again) return leave_next(start.next_fd, next.delay, to_text(next.life));
        record.end_generations(next.ends, next.why_not);
        note_remarks(run);
        record.end(code, outcome);
        end_life(run, code);
    });
}

}  // namespace muster
