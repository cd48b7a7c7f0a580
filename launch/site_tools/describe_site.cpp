#include "launch/site_tools/cluster_facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "base/text_table.hpp"
#include "base/trust/foreign_json.hpp"

namespace muster {

namespace {

using nlohmann::ordered_json;

std::string known(std::optional<int> const& value) {
    return value ? std::to_string(*value) : "not known";
}

std::string known(std::string const& value) {
    return value.empty() ? "not known" : value;
}

std::string walltime_text(std::optional<duration> const& value) {
    return value ? format_walltime(*value) : "not known";
}

/// Returns "Nodes", with the source of these facts if it is not the file's.
std::string heading(site const& where, std::string_view title, std::string const& section) {
    auto const own = where.section_sources.find(section);
    auto const& fact = own == where.section_sources.end() ? site_fact{where.source, where.source_date} : own->second;
    return fmt::format("\n{} ({}, {})\n", title, fact.source, fact.date);
}

std::string line(std::string_view what, std::string const& value) {
    return fmt::format("  {:24} {}\n", what, value);
}

std::string node_text(site const& where, std::string const& topology) {
    auto const& node = where.node;
    auto text = heading(where, "Nodes", "node");
    text += line("nodes", known(node.count));
    text += line("GPUs of a node",
                 node.gpu_model.empty() ? known(node.gpus) : fmt::format("{} {}", known(node.gpus), node.gpu_model));
    text += line("cores", known(node.cores)) + line("hardware threads", known(node.cpus));
    text += line("threads next to GPUs", node.gpu_cpus.empty() ? "not known" : fmt::format("{}", fmt::join(node.gpu_cpus, " ")));
    text +=
        line("GPU by local rank", node.nearest_gpu.empty() ? "not known" : fmt::format("{}", fmt::join(node.nearest_gpu, " ")));
    text += line("GPU next to cards", node.nic_gpu.empty() ? "not known" : fmt::format("{}", fmt::join(node.nic_gpu, " ")));
    return text + line("machine to plan on", topology.empty() ? "none is installed" : topology);
}

void add_row(text_table& table, std::string const& name, queue_limits const& limits, std::string const& note) {
    auto const nodes = fmt::format("{} to {}", limits.min_nodes, limits.max_nodes ? std::to_string(*limits.max_nodes) : "?");
    table.add({name, nodes, limits.min_walltime ? format_walltime(*limits.min_walltime) : "-", walltime_text(limits.max_walltime),
               note});
}

std::string queues_text(site const& where) {
    auto text = heading(where, "Queues", "queue");
    if (where.queues.empty()) return text + (where.scheduler == script_kind::local ? "  none\n" : "  not known\n");
    text_table table({"  queue", "nodes", "at least", "at most", "note"});
    for (auto const& queue : where.queues) {
        auto note = queue.note;
        if (!queue.gpu_counts.empty())
            note += fmt::format("{}{} GPUs", note.empty() ? "" : "; ", fmt::join(queue.gpu_counts, ", "));
        auto const add = [&](std::optional<int> const& value, std::string_view one, std::string_view where_it_is) {
            if (value) note += fmt::format("{}{} {}", note.empty() ? "" : "; ", counted(*value, one), where_it_is);
        };
        if (!queue.accounts.empty())
            note += fmt::format("{}account{} {}", note.empty() ? "" : "; ", queue.accounts.size() == 1 ? "" : "s",
                                join(queue.accounts, ", "));
        add(queue.gpus, "GPU", "a node");
        add(queue.cores, "core", "a node");
        add(queue.cpus, "hardware thread", "a node");
        add(queue.max_gpu_nodes, "node", "with GPUs");
        add_row(table, "  " + queue.name, queue.limits, note);
        for (auto const& route : queue.routes) add_row(table, "    " + route.name, route.limits, "");
    }
    return text + table.text();
}

std::string header_text(site const& where) {
    auto const& header = where.header;
    auto text = heading(where, "Job scripts", "header");
    text += line("account", header.account_required ? "needed" + (header.account_hint.empty() ? "" : ": " + header.account_hint)
                                                    : "not needed, as far as is known");
    text += line("queue", header.queue_required ? "needed" : "not needed, as far as is known");
    if (header.queue_is_qos) text += line("--queue means", "a quality of service (qos)");
    if (header.whole_nodes) text += line("nodes are given", "whole");
    if (header.login_shell) text += line("shell", "a login shell");
    if (!header.default_queue.empty()) text += line("queue if none is given", header.default_queue);
    if (header.cpus_per_gpu) text += line("hardware threads a GPU", std::to_string(*header.cpus_per_gpu));
    for (auto const& [name, value] :
         {std::pair("constraint", header.constraint), std::pair("chunk", header.chunk), std::pair("place", header.place),
          std::pair("filesystems", header.filesystems), std::pair("attributes", header.attributes)})
        if (!value.empty()) text += line(name, value);
    for (auto const& directive : header.directives) text += line("directive", directive);
    return text;
}

std::string words_text(std::string_view what, std::vector<std::string> const& words) {
    std::string text;
    for (auto const& word : words) text += line(what, word);
    return text;
}

std::string environment_text(site const& where) {
    std::string text;
    if (!where.modules.empty() || !where.setup.empty() || !where.container_runtime.empty() || where.container_args)
        text += heading(where, "In every job", "script") + words_text("module", where.modules) + words_text("setup", where.setup);
    if (!where.container_runtime.empty()) text += line("containers", where.container_runtime);
    if (where.container_args)
        text += line("words for containers", where.container_args->empty() ? "none" : shell_join(*where.container_args));
    if (!where.environment.empty()) text += heading(where, "Variables of every job", "environment");
    for (auto const& [name, value] : where.environment) text += line(name, value);
    if (!where.modules_multi_node.empty() || !where.setup_multi_node.empty())
        text += heading(where, "In jobs of several nodes, without --no-network-env", "script_multi_node") +
                words_text("module", where.modules_multi_node) + words_text("setup", where.setup_multi_node);
    if (!where.environment_multi_node.empty())
        text += heading(where, "Variables of jobs of several nodes, without --no-network-env", "environment_multi_node");
    for (auto const& [name, value] : where.environment_multi_node) text += line(name, value);
    if (!where.settings.empty()) text += heading(where, "Settings of muster", "settings");
    for (auto const& one : where.settings) text += line(one.name, shell_join(one.entries));
    text +=
        heading(where, "Paths", "paths") + line("scratch", known(where.scratch)) + line("node-local", known(where.node_local));
    return text;
}

ordered_json optional_json(auto const& value) {
    return value ? ordered_json(*value) : ordered_json();
}

ordered_json limits_json(queue_limits const& limits) {
    ordered_json json{{"min_nodes", limits.min_nodes}, {"max_nodes", optional_json(limits.max_nodes)}};
    json["min_walltime_s"] = limits.min_walltime ? ordered_json(limits.min_walltime->count()) : ordered_json();
    json["max_walltime_s"] = limits.max_walltime ? ordered_json(limits.max_walltime->count()) : ordered_json();
    return json;
}

std::string dumped(ordered_json const& json) {
    return json_text(json, 2) + "\n";
}

}  // namespace

std::string describe_site(site const& where, std::string const& topology) {
    auto text = fmt::format("{}: {}\n", where.name, where.description);
    if (where.decommissioned) text += "This machine is no longer there: what is shown is how it was.\n";
    text += line("scheduler", std::string(to_string(where.scheduler))) + line("file", where.file) +
            line("facts from", fmt::format("{}, {}", where.source, where.source_date));
    text += node_text(where, topology) + header_text(where) + queues_text(where) + environment_text(where);
    text += "\nNot known\n";
    if (where.unknown.empty()) text += "  nothing is named by the file\n";
    for (auto const& what : where.unknown) text += fmt::format("  {}\n", what);
    return text;
}

std::string site_json(site const& where, std::string const& topology) {
    ordered_json json{{"schema", "muster.site/1"},
                      {"name", where.name},
                      {"description", where.description},
                      {"scheduler", to_string(where.scheduler)},
                      {"file", where.file},
                      {"decommissioned", where.decommissioned},
                      {"facts", where.source},
                      {"date", where.source_date},
                      {"unknown", where.unknown},
                      {"nodes", optional_json(where.node.count)},
                      {"gpus", optional_json(where.node.gpus)},
                      {"gpu_model", where.node.gpu_model},
                      {"cores", optional_json(where.node.cores)},
                      {"cpus", optional_json(where.node.cpus)},
                      {"gpu_cpus", where.node.gpu_cpus},
                      {"topology", topology},
                      {"scratch", where.scratch},
                      {"node_local", where.node_local}};
    json["sources"] = ordered_json::object();
    for (auto const& [section, fact] : where.section_sources)
        json["sources"][section] = {{"facts", fact.source}, {"date", fact.date}};
    json["queues"] = ordered_json::array();
    for (auto const& queue : where.queues) {
        auto row = limits_json(queue.limits);
        row.update({{"name", queue.name},
                    {"note", queue.note},
                    {"limits_known", queue.limits.are_known()},
                    {"gpus", optional_json(queue.gpus)},
                    {"cores", optional_json(queue.cores)},
                    {"cpus", optional_json(queue.cpus)},
                    {"accounts", queue.accounts},
                    {"max_gpu_nodes", optional_json(queue.max_gpu_nodes)}});
        row["routes"] = ordered_json::array();
        for (auto const& route : queue.routes) {
            auto behind = limits_json(route.limits);
            behind["name"] = route.name;
            row["routes"].push_back(behind);
        }
        json["queues"].push_back(row);
    }
    return dumped(json);
}

std::string site_table(std::vector<site_entry> const& entries, std::size_t most_width) {
    text_table table({"site", "scheduler", "nodes", "GPUs", "facts of", "what it is"});
    for (auto const& entry : entries) {
        if (!entry.problem.empty()) {
            auto const first = entry.problem.substr(0, entry.problem.find('\n'));
            table.add({entry.name, "-", "-", "-", "-", "cannot be used: " + first});
            continue;
        }
        auto const& where = entry.known;
        table.add({entry.name, std::string(to_string(where.scheduler)),
                   where.node.count ? std::to_string(*where.node.count) : "?",
                   where.node.gpus ? std::to_string(*where.node.gpus) : "?", where.source_date, where.description});
    }
    return table.text(most_width);
}

std::string site_list_json(std::vector<site_entry> const& entries) {
    ordered_json json{{"schema", "muster.sites/1"}, {"sites", ordered_json::array()}};
    for (auto const& entry : entries) {
        ordered_json row{{"name", entry.name}, {"file", entry.path.string()}};
        if (!entry.problem.empty()) {
            row["problem"] = entry.problem;
        } else {
            row.update({{"description", entry.description},
                        {"scheduler", to_string(entry.known.scheduler)},
                        {"nodes", optional_json(entry.known.node.count)},
                        {"gpus", optional_json(entry.known.node.gpus)},
                        {"date", entry.known.source_date},
                        {"decommissioned", entry.known.decommissioned}});
        }
        json["sites"].push_back(row);
    }
    return dumped(json);
}

}  // namespace muster
