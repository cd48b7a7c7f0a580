#include "launch/site/planned_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/hardware/given_gpus.hpp"
#include "launch/hardware/topology_xml.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/settings/settings_to_options.hpp"
#include "launch/site/script_plan.hpp"
#include "launch/site/site_machine.hpp"
#include "launch/site/site_placement.hpp"

namespace muster {

namespace {

constexpr int most_shown = 100'000;

/// --gpus 8 with a site: a number of the site's GPUs, and no description of a machine's.
std::optional<int> gpus_of_site(settings_result const& given) {
    if (given.text("site").empty() || !given.text("topology").empty()) return std::nullopt;
    auto const number = parse_integer(given.text("gpus"));
    return number && *number > 0 && *number <= 10'000'000 ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

topology load_machine(std::string const& file, std::string const& gpus) {
    auto machine = load_topology(file);
    return gpus.empty() ? machine : with_gpus(std::move(machine), gpus);
}

/// Takes a machine like the site's nodes for every node, if there is one, and notes what is shown.
void take_site_machine(std::string const& site_name, std::string const& gpus, environment const& variables,
                       planned_nodes& found) {
    if (site_name.empty()) return;
    auto const where = load_site(site_name, site_search_path(variables));
    auto const file = topology_of_site(where, topology_search_path());
    if (!file.empty()) {
        found.known.every_node = load_machine(file, gpus);
        found.known.every_node->host = where.name;
        found.notes.push_back(fmt::format(
            "nodes like those of {} are shown, as {} has them, and not this machine; --topology FILE.xml takes another file",
            where.name, file));
        if (!where.unknown.empty())
            found.notes.push_back(fmt::format("not known of {}: {}", where.name, join(where.unknown, "; ")));
    } else if (where.name != "workstation") {
        found.notes.push_back(fmt::format(
            "this machine is shown, and no node of {}: there is no file of one; --topology FILE.xml takes one that lstopo wrote",
            where.name));
    }
}

}  // namespace

placement_request with_gpus_of_site(placement_request wanted, settings_result const& given) {
    if (auto const gpus = gpus_of_site(given); gpus && !wanted.ranks) wanted.ranks = *gpus * wanted.ranks_per_gpu;
    return wanted;
}

std::vector<node> nodes_like(node const& one, placement_request const& wanted) {
    int const room = one.gpus.value_or(0) > 0 ? *one.gpus * wanted.ranks_per_gpu : one.slots;
    int const each = std::max(1, wanted.ranks_per_node.value_or(wanted.slots_per_node.value_or(room)));
    int const needed = wanted.nodes.value_or((wanted.ranks.value_or(1) - 1) / each + 1);
    int const count = std::clamp(needed, 1, most_shown);
    std::vector<node> nodes(static_cast<std::size_t>(count), one);
    for (int n = 0; n < count && count > 1; ++n) {
        auto& name = nodes[static_cast<std::size_t>(n)].name;
        nodes[static_cast<std::size_t>(n)].address = name = fmt::format("{}{}", one.name, n + 1);
    }
    return nodes;
}

planned_nodes find_planned_nodes(settings_result const& given, placement_request const& wanted, environment const& variables) {
    planned_nodes found;
    auto& known = found.known;
    auto const gpus = gpus_of_site(given) ? std::string() : given.text("gpus"), site_name = given.text("site"),
               file = given.text("topology");
    if (!file.empty()) known.every_node = load_machine(topology_file(file, topology_search_path()), gpus);
    auto const choice = choice_with_site(make_allocation_choice(given), site_name, variables);
    if (auto const asked = gpus_of_site(given)) {
        auto const where = load_site(site_name, site_search_path(variables));
        if (auto const why = where.node.gpus ? uneven_gpus(where, *asked, *where.node.gpus) : std::string(); !why.empty())
            found.notes.push_back(fmt::format("{}: muster script refuses that; use --gpus {} or --gpus {}", why,
                                              *asked / *where.node.gpus * *where.node.gpus,
                                              (*asked / *where.node.gpus + 1) * *where.node.gpus));
    }
    bool like_site = false;
    auto const this_node = [&]() -> node {  // asked for outside of any job alone
        if (!known.every_node && choice.scheduler != scheduler_kind::local) {
            take_site_machine(site_name, gpus, variables, found);
            like_site = known.every_node.has_value();
        }
        if (known.every_node) return node_of(*known.every_node, wanted);
        if (!known.this_node) known.this_node = discover_here(variables);
        return node_of(*known.this_node, wanted);
    };
    auto const sources =
        telling_sources(real_sources(variables, this_node), [&found](std::string const& what) { found.notes.push_back(what); });
    found.given = read_allocation(sources, choice);
    if (given.given("gpus") && !known.every_node)
        throw error(
            errc::usage,
            "--gpus describes the machine of --topology FILE.xml, or of --site outside of a job, but neither is given; give "
            "it, or choose GPUs of this machine with CUDA_VISIBLE_DEVICES");
    if (like_site && found.given.nodes.size() == 1) {
        found.given.nodes = nodes_like(found.given.nodes.front(), wanted);
        if (found.given.nodes.size() > 1) found.given.scheduler = scheduler_kind::hostfile;
    }
    return found;
}

}  // namespace muster
