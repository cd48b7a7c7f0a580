#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/text_table.hpp"
#include "launch/commands/commands.hpp"
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
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace muster
