// Reads what `flux resource list` and `flux queue list` print.

#include "base/text.hpp"
#include "launch/site_tools/cluster_facts.hpp"

namespace muster {

namespace {

int number_in(std::string_view text) {
    auto const number = parse_integer(trim(text));
    return number && *number >= 0 && *number < 1'000'000'000 ? static_cast<int>(*number) : 0;
}

/// Reads "86400.0" and "inf".
void read_time_limit(std::string_view text, queue_facts& queue) {
    if (text == "inf" || text == "0.0") {
        queue.unlimited_time = true;
        return;
    }
    if (auto const seconds = parse_real(text); seconds && *seconds > 0) queue.max_walltime = duration(*seconds);
}

std::optional<queue_facts> read_flux_queue(std::string_view line) {
    auto const fields = split(line, '|');
    if (fields.size() != 4 || trim(fields[0]).empty()) return std::nullopt;
    queue_facts queue;
    queue.name = trim(fields[0]);
    queue.is_default = trim(fields[1]) == queue.name + "*";
    read_time_limit(trim(fields[2]), queue);
    if (int const most = number_in(fields[3]); most > 0) queue.max_nodes = most;
    return queue;
}

}  // namespace

cluster_facts read_flux_facts(std::string_view resources, std::string_view queues) {
    cluster_facts facts{.scheduler = script_kind::flux, .source = "flux resource list and flux queue list"};
    int nodes = 0, cores = 0, gpus = 0;
    for (auto const line : split(resources, '\n')) {
        auto const fields = split(line, '|');
        if (fields.size() != 3) continue;
        nodes += number_in(fields[0]);
        cores += number_in(fields[1]);
        gpus += number_in(fields[2]);
    }
    if (nodes > 0) {
        node_facts node{.count = nodes};
        if (gpus % nodes == 0) node.gpus = gpus / nodes;
        if (cores % nodes == 0) node.cores = cores / nodes;
        if (gpus % nodes != 0 || cores % nodes != 0)
            facts.unknown.push_back("the shape of a node: they are of several, and flux resource list counts them together");
        facts.shapes.push_back(node);
    }
    for (auto const line : split(queues, '\n'))
        if (auto queue = read_flux_queue(line)) facts.queues.push_back(*std::move(queue));
    facts.unknown.push_back("whether jobs get whole nodes (whole_nodes = true), and the bank that they need");
    return facts;
}

}  // namespace muster
