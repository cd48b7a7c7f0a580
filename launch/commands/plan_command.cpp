#include "launch/commands/plan_command.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

#include "launch/commands/real_settings.hpp"
#include "launch/help/help.hpp"
#include "launch/placement/plan.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/settings/settings_to_options.hpp"
#include "launch/site/planned_nodes.hpp"
#include "launch/site/site_placement.hpp"

namespace muster {

namespace {

plan make(settings_result const& given, environment const& variables) {
    auto const wanted = with_gpus_of_site(with_site(make_placement_request(given), given.text("site"), variables), given);
    auto [nodes, known, notes] = find_planned_nodes(given, wanted, variables);
    known.is_this_node = [local = nodes.scheduler == scheduler_kind::local](node const& n) { return local || is_this_host(n); };
    bool here = false;
    for (auto const& n : nodes.nodes) here = here || known.is_this_node(n);
    if (here && !known.every_node && !known.this_node) known.this_node = discover_here(variables);
    auto p = make_plan(std::move(nodes), wanted, known);
    p.notes.insert(p.notes.begin(), notes.begin(), notes.end());
    return p;
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
