// Reads what pbsnodes and qmgr report about a cluster.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/trust/foreign_json.hpp"
#include "launch/site_tools/cluster_facts.hpp"

namespace muster {

namespace {

using nlohmann::json;

/// Returns a number that PBS writes as a number or as a text.
std::optional<int> number_at(json const& object, char const* key) {
    auto const found = object.find(key);
    if (found == object.end()) return std::nullopt;
    std::optional<std::int64_t> number;
    if (found->is_number_integer()) number = found->get<std::int64_t>();
    if (found->is_string()) number = parse_integer(found->get<std::string>());
    return number && *number >= 0 && *number <= 1'000'000 ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

/// Sums the vnodes of each host.
std::map<std::string, node_facts> read_hosts(json const& nodes) {
    std::map<std::string, node_facts> hosts;
    for (auto const& [vnode, node] : nodes.items()) {
        if (!node.is_object()) continue;
        auto const resources = node.value("resources_available", json::object());
        if (!resources.is_object()) continue;
        auto const named = text_at(resources, "/host");
        auto& host = hosts[named.empty() ? vnode : named];
        host.count = 1;
        host.gpus = std::min(host.gpus.value_or(0) + number_at(resources, "ngpus").value_or(0), 1024);
        host.cpus = host.cpus.value_or(0) + number_at(resources, "ncpus").value_or(0);
    }
    return hosts;
}

constexpr char const* not_enabled = "takes no jobs now";  ///< the state of a queue before it is enabled

std::optional<int> count_of(std::string_view text) {
    auto const count = parse_integer(text);
    return count && *count > 0 && *count <= 1'000'000 ? std::optional(static_cast<int>(*count)) : std::nullopt;
}

std::optional<duration> time_of(std::string const& text) {
    try {
        return parse_duration(text);
    } catch (parse_error const&) {
        return std::nullopt;
    }
}

void read_queue_attribute(std::string_view name, std::string const& value, queue_facts& queue) {
    if (name == "resources_max.walltime") queue.max_walltime = time_of(value);
    if (name == "resources_min.walltime") queue.min_walltime = time_of(value);
    if (name == "resources_max.nodect" || name == "resources_max.nodes") queue.max_nodes = count_of(value);
    if (name == "route_destinations")
        for (auto const target : split(value, ',')) queue.routes_to.emplace_back(trim(target));
    if (name == "from_route_only" && value == "True") queue.closed = "takes jobs of routing queues only";
    if (name == "enabled" && value == "True" && queue.closed == not_enabled) queue.closed.clear();
    if (name == "enabled" && value == "False") queue.closed = not_enabled;
}

/// Holds the defaults for all queues.
struct server_facts {
    std::string preferred;
    queue_facts limits = {};
};

/// Splits "set queue workq resources_max.walltime = 24:00:00" into queue, attribute and value.
void read_line(std::string_view line, cluster_facts& facts, server_facts& server) {
    auto const equals = line.find("= ");
    auto const words = split(trim(line.substr(0, line.find_first_of("+="))), ' ');
    bool const creates = words.size() == 3 && words[0] == "create" && words[1] == "queue";
    if (equals == std::string_view::npos && !creates) return;
    auto const value = creates ? std::string() : std::string(trim(line.substr(equals + 2)));
    if (words.size() == 3 && words[1] == "server") {
        if (words[2] == "default_queue") server.preferred = value;
        read_queue_attribute(words[2], value, server.limits);
    }
    if (!creates && (words.size() != 4 || words[1] != "queue")) return;
    auto found = std::ranges::find_if(facts.queues, [&](auto const& q) { return q.name == words[2]; });
    if (found == facts.queues.end()) found = facts.queues.insert(facts.queues.end(), {.name = std::string(words[2])});
    if (creates)
        found->closed = not_enabled;
    else
        read_queue_attribute(words[3], value, *found);
}

/// Without a limit of the queue or the server, there is no limit. A routing queue has the limits of its destinations.
void finish_queue(queue_facts& queue, server_facts const& server) {
    queue.is_default = queue.name == server.preferred;
    if (!queue.max_walltime) queue.max_walltime = server.limits.max_walltime;
    if (!queue.max_nodes) queue.max_nodes = server.limits.max_nodes;
    queue.unlimited_time = !queue.max_walltime && queue.routes_to.empty();
}

}  // namespace

cluster_facts read_pbs_facts(std::string_view pbsnodes, std::string_view qmgr) {
    cluster_facts facts{.scheduler = script_kind::pbs, .source = "pbsnodes -a and qmgr"};
    auto const document = parse_json_or_discard<json>(pbsnodes);
    if (document.is_discarded() || !document.is_object())
        throw error(errc::parse, "pbsnodes -a -F json: what it printed is no JSON; run it by hand to see");
    auto const nodes = document.find("nodes");
    if (nodes != document.end() && nodes->is_object())
        for (auto const& [host, node] : read_hosts(*nodes)) {
            auto const same = std::ranges::find_if(facts.shapes, [&](auto const& other) {
                return std::tuple(other.gpus, other.cpus) == std::tuple(node.gpus, node.cpus);
            });
            if (same == facts.shapes.end())
                facts.shapes.push_back(node);
            else
                ++same->count;
        }
    std::ranges::stable_sort(facts.shapes, [](node_facts const& a, node_facts const& b) {
        return std::tuple(a.gpus > 0, a.count, a.gpus) > std::tuple(b.gpus > 0, b.count, b.gpus);
    });
    server_facts server;
    for (auto const line : split(qmgr, '\n')) read_line(trim(line), facts, server);
    for (auto& queue : facts.queues) finish_queue(queue, server);
    facts.name = text_at(document, "/pbs_server");
    facts.unknown.push_back("whether an account is needed");
    return facts;
}

}  // namespace muster
