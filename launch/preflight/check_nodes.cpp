#include "launch/preflight/check_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "base/command/print_note.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/version.hpp"
#include "launch/engine/engine_job.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/preflight/node_probe.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/samples/remarks/odd_nodes.hpp"
#include "launch/system/network.hpp"

namespace muster {

namespace {

void learn(node& known, node_report const& seen, bool though_named) {
    if (!known.gpus && (!known.slots_named || though_named)) {
        known.gpus = static_cast<int>(seen.gpus.size());
        known.gpus_counted = true;
    }
    if (!known.cpus && seen.cpus > 0) known.cpus = seen.cpus;
}

std::vector<std::string> bad_names(node_survey const& survey) {
    std::vector<std::string> names;
    for (int n = 0; n < static_cast<int>(survey.nodes.size()); ++n)
        if (is_bad(survey.findings, n)) names.push_back(survey.nodes[static_cast<std::size_t>(n)].name);
    return names;
}

void print_findings(run_options const& options, node_survey const& survey) {
    for (auto const& line : describe_findings(survey.findings, survey.nodes, severity::error))
        fmt::print(stderr, "muster: {}\n", line);
    if (options.quiet) return;
    for (auto const& line : describe_findings(survey.findings, survey.nodes, severity::note)) print_note(line);
}

void print_nodes(node_survey const& survey, duration took) {
    for (auto const& [name, address, report, silence, ahead, error, towards, fault, expected] : survey.nodes)
        if (report)
            fmt::print(stderr, "muster: {}: {} ({}), {}, {} ({}), clock {:+.3f} s\n", name, report->address, report->interface,
                       counted(report->cores, "core"), counted(report->gpus.size(), "GPU"), report->gpu_note, ahead);
    fmt::print(stderr, "muster: inspected {} in {}\n", counted(survey.nodes.size(), "node"), format_duration(took));
}

/// Adds what is remembered of these nodes: nothing of it makes a node bad.
void note_odd_nodes(run_plan const& run, node_survey& survey) {
    auto const now = std::time(nullptr);
    for (auto const& odd : recall_odd_nodes(run.inherited, run.given.cluster, now))
        for (int n = 0; n < static_cast<int>(survey.nodes.size()); ++n)
            if (short_name(survey.nodes[static_cast<std::size_t>(n)].name) == odd.host)
                survey.findings.push_back({n, severity::note, "it " + describe(odd, now), ""});
}

/// Returns the allocation without its bad nodes. Throws if the requested ranks do not fit on the others.
allocation without_bad_nodes(run_options const& options, allocation const& given, std::vector<int> const& nodes,
                             node_survey const& survey) {
    auto const bad = bad_names(survey);
    allocation left = given;
    left.nodes.clear();
    for (std::size_t n = 0; n < nodes.size(); ++n)
        if (!is_bad(survey.findings, static_cast<int>(n))) left.nodes.push_back(given.nodes[static_cast<std::size_t>(nodes[n])]);
    auto const without = fmt::format("without {} ({} of {} nodes)", list_some(bad, "nodes"), bad.size(), nodes.size());
    if (left.nodes.empty())
        throw error(errc::unavailable, "no node passed preflight; see the reasons above, or run muster doctor --allocation");
    if (options.place.nodes && *options.place.nodes > static_cast<int>(left.nodes.size()))
        throw_error(errc::placement, "{}: --nnodes {} are asked for and {} are left; ask for spare nodes", without,
                    *options.place.nodes, left.nodes.size());
    try {
        map_ranks(left, options.place);
    } catch (error const& e) {
        throw_error(e.code(), "{}: {}", without, e.what());
    }
    if (!options.quiet) print_note("going on {}", without);
    return left;
}

}  // namespace

node_survey survey_nodes(run_plan const& run, std::vector<int> const& nodes) {
    auto const& given = run.given;
    node_limits wanted;
    wanted.version = version();
    node_survey survey;
    auto const& only = given.nodes[static_cast<std::size_t>(nodes.front())];
    bool const here = nodes.size() == 1 && (given.scheduler == scheduler_kind::local || is_this_host(only));
    if (here) {
        probed_node one;
        one.name = only.name;
        one.address = only.address;
        one.gpus_expected = only.gpus;
        one.report = inspect_node(make_node_question(run, nodes, nodes.front()), run.inherited, -1);
        survey.nodes.push_back(std::move(one));
    } else {
        survey.nodes = probe_nodes(run, nodes, [&](std::vector<probed_node> const& seen) { return first_good(seen, wanted); });
    }
    survey.findings = find_faults(survey.nodes, wanted);
    note_odd_nodes(run, survey);
    return survey;
}

allocation check_nodes(run_plan const& run, bool unknown) {
    auto const& options = run.options;
    auto const& given = run.given;
    bool const decides = options.preflight || options.exclude_bad_nodes;
    auto const nodes = options.exclude_bad_nodes || unknown ? all_nodes(given) : used_nodes(map_ranks(given, options.place));
    auto const start = std::chrono::steady_clock::now();
    auto const survey = survey_nodes(run, nodes);
    allocation known = given;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (auto const& report = survey.nodes[i].report; unknown && report && report->machine_fault.empty())
            learn(known.nodes[static_cast<std::size_t>(nodes[i])], *report, some_tell_gpus(given));
    if (options.verbose) print_nodes(survey, std::chrono::steady_clock::now() - start);
    if (!decides) {
        for (auto const& one : survey.nodes)
            if (!one.report)
                throw_error(errc::unavailable,
                            "cannot tell how many GPUs {} has: it {}; give the number of ranks (-n, --ranks-per-node), or leave "
                            "bad nodes out with --exclude-bad-nodes",
                            one.name, one.silence);
        return known;
    }
    print_findings(options, survey);
    auto const bad = bad_names(survey);
    if (bad.empty()) return known;
    if (!options.exclude_bad_nodes)
        throw_error(errc::unavailable,
                    "{} of {} nodes did not pass preflight: {}; correct what is printed above, or leave them out with "
                    "--exclude-bad-nodes",
                    bad.size(), nodes.size(), list_some(bad, "nodes"));
    return without_bad_nodes(options, known, nodes, survey);
}

}  // namespace muster
