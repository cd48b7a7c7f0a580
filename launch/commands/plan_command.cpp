#include "launch/commands/plan_command.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/error.hpp"
#include "base/process/self_program.hpp"
#include "launch/commands/real_settings.hpp"
#include "launch/hardware/given_gpus.hpp"
#include "launch/hardware/topology_xml.hpp"
#include "launch/help/help.hpp"
#include "launch/placement/plan.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/settings/settings_to_options.hpp"
#include "launch/site/site_placement.hpp"

namespace muster {

namespace {

/// The nodes of this job; outside of any job one like the machine of --topology.
allocation find_nodes(settings_result const& given, placement_request const& wanted, environment const& variables,
                      known_machines& known) {
    auto const choice = choice_with_site(make_allocation_choice(given), given.text("site"), variables);
    auto const this_node = [&]() -> node {
        if (known.every_node) return node_of(*known.every_node, wanted);
        if (!known.this_node) known.this_node = discover_here(variables);
        return node_of(*known.this_node, wanted);
    };
    return read_allocation(real_sources(variables, this_node), choice);
}

/// A file as it is given, or the installed one of that name: "polaris" is share/muster/topologies/polaris.xml.
std::string topology_file(std::string const& given) {
    if (given.find('/') != std::string::npos || given.ends_with(".xml")) return given;
    auto const installed = self_program().parent_path().parent_path() / "share" / "muster" / "topologies" / (given + ".xml");
    std::error_code failed;
    return std::filesystem::exists(installed, failed) ? installed.string() : given;
}

plan make(settings_result const& given, environment const& variables) {
    known_machines known;
    if (auto const file = given.text("topology"); !file.empty()) {
        known.every_node = load_topology(topology_file(file));
        if (auto const gpus = given.text("gpus"); !gpus.empty()) known.every_node = with_gpus(*known.every_node, gpus);
    } else if (given.given("gpus")) {
        throw error(
            errc::usage,
            "--gpus describes the machine of --topology FILE.xml, which is missing; give it, or choose GPUs of this machine with "
            "CUDA_VISIBLE_DEVICES");
    }
    auto const wanted = with_site(make_placement_request(given), given.text("site"), variables);
    auto const nodes = find_nodes(given, wanted, variables, known);
    known.is_this_node = [&](node const& n) { return nodes.scheduler == scheduler_kind::local || is_this_host(n); };
    bool here = false;
    for (auto const& n : nodes.nodes) here = here || known.is_this_node(n);
    if (here && !known.every_node && !known.this_node) known.this_node = discover_here(variables);
    return make_plan(nodes, wanted, known);
}

}  // namespace

int plan_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("plan", args, real_settings(variables));
    if (print_help_if_asked("plan", given)) return 0;
    print_notes(given);
    auto const p = make(given, variables);
    if (given.flag("json")) {
        fmt::print("{}", plan_json(p));
        return 0;
    }
    fmt::print("{}", plan_table(p));
    if (!given.flag("quiet"))
        for (auto const& note : p.notes) fmt::print(stderr, "muster: note: {}\n", note);
    if (given.flag("verbose"))
        for (auto const& shape : p.shapes)
            if (!shape.machine.gpu_detail.empty())
                fmt::print(stderr, "muster: note: {}: {}\n", shape.machine.host, shape.machine.gpu_detail);
    return 0;
}

}  // namespace muster
