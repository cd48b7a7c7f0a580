#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/command/print_note.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "base/text_table.hpp"
#include "base/trust/foreign_json.hpp"
#include "launch/commands/commands.hpp"
#include "launch/engine/engine_job.hpp"
#include "launch/hardware/discover_topology.hpp"
#include "launch/help/help.hpp"
#include "launch/placement/job_layout.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/placement/plan.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/scheduler/allocation.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/settings/resolve_settings.hpp"
#include "launch/settings/settings_to_options.hpp"
#include "launch/site/site_placement.hpp"

namespace muster {

struct planned_nodes {
    allocation given;
    known_machines known;
    std::vector<std::string> notes;
};

namespace {

constexpr int most_shown = 100'000;

/// Returns N of --gpus N with a site: a number of the site's GPUs, not a description of a machine's.
std::optional<int> gpus_of_site(settings_result const& given) {
    if (given.text("site").empty() || !given.text("topology").empty()) return std::nullopt;
    auto const number = parse_integer(given.text("gpus"));
    return number && *number > 0 && *number <= 10'000'000 ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

topology load_machine(std::string const& file, std::string const& gpus) {
    auto machine = load_topology(file);
    return gpus.empty() ? machine : with_gpus(std::move(machine), gpus);
}

/// Uses a machine like the site's nodes for every node, if there is one, and notes what is shown.
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

/// Returns `wanted` with a rank for each GPU of `--site NAME --gpus N` without --topology, if the user gives no number of ranks:
/// N GPUs of the site's nodes, as muster script takes them. Pure.
placement_request with_gpus_of_site(placement_request wanted, settings_result const& given) {
    if (auto const gpus = gpus_of_site(given); gpus && !wanted.ranks) wanted.ranks = *gpus * wanted.ranks_per_gpu;
    return wanted;
}

/// Returns the nodes like `one` that `wanted` needs, "polaris1", "polaris2", ...; a single one keeps its name. Pure.
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

/// Outside of any job, with --site and without --topology, nodes are like the site's, as many as `wanted` needs; --scheduler
/// local shows this machine. Throws as read_allocation, load_topology, load_site and discover_here; errc::usage for --gpus
/// without a machine that would have them.
planned_nodes find_planned_nodes(settings_result const& given, placement_request const& wanted, environment const& variables) {
    planned_nodes found;
    auto& known = found.known;
    auto const gpus = gpus_of_site(given) ? std::string() : given.text("gpus"), site_name = given.text("site"),
               file = given.text("topology");
    if (!file.empty()) known.every_node = load_machine(topology_file(file, topology_search_path()), gpus);
    auto const choice = choice_with_site(make_allocation_choice(given), site_name, variables);
    if (auto const asked = gpus_of_site(given)) {
        auto const where = load_site(site_name, site_search_path(variables));
        if (auto const why = where.node.gpus.value_or(0) > 0 ? uneven_gpus(where, *asked, *where.node.gpus) : std::string();
            !why.empty())
            found.notes.push_back(fmt::format("{}: muster script refuses that; use --gpus {} or --gpus {}", why,
                                              *asked / *where.node.gpus * *where.node.gpus,
                                              (*asked / *where.node.gpus + 1) * *where.node.gpus));
    }
    bool like_site = false;
    auto const this_node = [&]() -> node {  // called only outside of any job
        if (!known.every_node && choice.scheduler != scheduler_kind::local) {
            take_site_machine(site_name, gpus, variables, found);
            like_site = known.every_node.has_value();
        }
        if (known.every_node) return node_of(*known.every_node, wanted);
        if (!known.this_node) known.this_node = discover_here(variables);
        auto one = node_of(*known.this_node, wanted);
        if (gpus_of_site(given) && choice.scheduler != scheduler_kind::local)
            if (auto const each = load_site(site_name, site_search_path(variables)).node.gpus.value_or(0); each > 0) {
                // Each node gets one rank for each GPU of the site's nodes, whatever this machine has.
                known.every_node = known.this_node;
                one.gpus = 0;
                one.slots = each * wanted.ranks_per_gpu;
                like_site = true;
            }
        return one;
    };
    auto const sources =
        telling_sources(real_sources(variables, this_node), [&found](std::string const& what) { found.notes.push_back(what); });
    found.given = read_allocation(sources, choice);
    if (given.given("gpus") && !known.every_node && !gpus_of_site(given))
        throw error(errc::usage,
                    "--gpus describes the machine of --topology FILE.xml, or of a --site that has one outside of a job, and "
                    "there is none; give "
                    "--topology, --ranks N for ranks without GPUs, or choose GPUs of this machine with CUDA_VISIBLE_DEVICES");
    if (like_site && found.given.nodes.size() == 1) {
        found.given.nodes = nodes_like(found.given.nodes.front(), wanted);
        if (found.given.nodes.size() > 1) found.given.scheduler = scheduler_kind::hostfile;
    }
    return found;
}

namespace {

plan make(settings_result const& given, environment const& variables) {
    auto const wanted = with_gpus_of_site(with_site(make_placement_request(given), given.text("site"), variables), given);
    auto [nodes, known, notes] = find_planned_nodes(given, wanted, variables);
    known.is_this_node = [local = nodes.scheduler == scheduler_kind::local](node const& n) { return local || is_this_host(n); };
    bool here = false;
    for (auto const& n : nodes.nodes) here = here || known.is_this_node(n);
    if (here && !known.every_node && !known.this_node) known.this_node = discover_here(variables);
    auto p = make_plan(std::move(nodes), wanted, known);
    for (auto const& note : notes_on_layout(p.given, wanted, p.map, variables)) p.notes.push_back(note);
    engine_job job;
    job.given = p.given;
    job.map = p.map;
    if (auto const why = beyond_first_component(job, variables)) p.notes.push_back("muster run refuses this: " + *why);
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
        for (auto const& note : p.notes) print_note(note);
    if (given.flag("verbose"))
        for (auto const& shape : p.shapes)
            if (!shape.machine.gpu_detail.empty()) print_note("{}: {}", shape.machine.host, shape.machine.gpu_detail);
    return 0;
}

namespace {

std::string gpu_text(binding const& b) {
    if (!b.device) return "-";
    auto const& g = *b.device;
    if (!g.known_to_driver) return fmt::format("{} ({})", g.index, g.name);
    auto const& identity = g.uuid.empty() ? g.pci : g.uuid;
    return identity.empty() ? std::to_string(g.index) : fmt::format("{} {}", g.index, identity);
}

nlohmann::ordered_json text_or_null(std::string const& text) {
    return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

nlohmann::ordered_json gpu_json(binding const& b) {
    if (!b.device) return nullptr;
    auto const& g = *b.device;
    nlohmann::ordered_json json{{"index", g.index}, {"uuid", g.uuid}, {"pci", g.pci}, {"name", g.name}};
    json["numa"] = nullptr;
    if (g.numa >= 0) json["numa"] = g.numa;
    if (g.mig) json["mig"] = {{"gpu_instance", g.mig->gpu_instance}, {"compute_instance", g.mig->compute_instance}};
    json["known_to"] = g.known_to_driver ? "driver" : "scheduler";
    json["device_index"] = b.device_index;
    json["visible_devices"] = text_or_null(b.visible_devices);
    return json;
}

nlohmann::ordered_json rank_json(plan const& p, int rank, rank_place const& place) {
    nlohmann::ordered_json row{
        {"rank", rank}, {"host", p.given.nodes[static_cast<std::size_t>(place.node)].name}, {"local_rank", place.local_rank}};
    auto const* b = p.binding_of(place);
    row["known"] = b != nullptr;
    for (auto const* name : {"gpu", "cpus", "numa", "nic", "why"}) row[name] = nullptr;
    if (b == nullptr) return row;
    row["gpu"] = gpu_json(*b);
    if (!b->cores.empty()) row["cpus"] = b->cores.to_list();
    if (b->numa >= 0) row["numa"] = b->numa;
    if (b->nic) row["nic"] = *b->nic;
    row["why"] = b->why;
    return row;
}

nlohmann::ordered_json node_json(plan const& p, std::size_t n) {
    auto const& node = p.given.nodes[n];
    nlohmann::ordered_json json{{"name", node.name}, {"ranks", p.map.ranks_per_node[n]}};
    for (auto const* name : {"cores", "allowed_cpus", "gpus", "gpu_note"}) json[name] = nullptr;
    if (int const shape = p.shape_of_node[n]; shape >= 0) {
        auto const& machine = p.shapes[static_cast<std::size_t>(shape)].machine;
        json["cores"] = machine.cores.size();
        json["allowed_cpus"] = machine.allowed().to_list();
        json["gpus"] = machine.gpus.size();
        json["gpu_note"] = machine.gpu_note;
    }
    return json;
}

}  // namespace

std::string plan_table(plan const& p) {
    text_table table({"rank", "host", "GPU", "cores", "NUMA", "NIC", "why"});
    auto const places = p.map.places();
    for (std::size_t r = 0; r < places.size(); ++r) {
        auto const& host = p.given.nodes[static_cast<std::size_t>(places[r].node)].name;
        auto const* b = p.binding_of(places[r]);
        if (b == nullptr)
            table.add({std::to_string(r), host, "?", "?", "?", "?",
                       fmt::format("local rank {}; not known from here", places[r].local_rank)});
        else
            table.add({std::to_string(r), host, gpu_text(*b), b->cores.empty() ? "any" : b->cores.to_list(),
                       b->numa < 0 ? "-" : std::to_string(b->numa), b->nic.value_or("-"), b->why});
    }
    return table.text();
}

std::string plan_json(plan const& p) {
    nlohmann::ordered_json json;
    json["schema"] = "muster.plan/1";
    json["scheduler"] = to_string(p.given.scheduler);
    json["job"] = text_or_null(p.given.job_id);
    json["world_size"] = p.map.world_size();
    json["notes"] = p.notes;
    json["nodes"] = nlohmann::ordered_json::array();
    for (std::size_t n = 0; n < p.given.nodes.size(); ++n) json["nodes"].push_back(node_json(p, n));
    json["ranks"] = nlohmann::ordered_json::array();
    auto const places = p.map.places();
    for (std::size_t r = 0; r < places.size(); ++r) json["ranks"].push_back(rank_json(p, static_cast<int>(r), places[r]));
    return json_text(json, 2) + "\n";
}

}  // namespace muster
