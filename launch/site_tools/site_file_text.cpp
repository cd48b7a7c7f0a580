// Writes a site file from what a cluster reports about itself.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/text.hpp"
#include "jobscripts/quote.hpp"
#include "launch/site_tools/cluster_facts.hpp"

namespace muster {

namespace {

/// Returns whether the nodes have no GPU that a job can request.
bool is_without_gpus(cluster_facts const& facts) {
    return !facts.shapes.empty() && facts.shapes.front().gpus == 0;
}

/// Returns a TOML string without characters that could end it or are not plain.
std::string toml_text(std::string_view text) {
    std::string safe;
    for (char const c : text)
        if (c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) safe += c;
    return fmt::format("\"{}\"", safe);
}

std::string toml_list(std::vector<std::string> const& texts) {
    std::vector<std::string> items;
    for (auto const& text : texts) items.push_back(toml_text(text));
    return fmt::format("[{}]", join(items, ", "));
}

std::string describe(node_facts const& node) {
    return fmt::format("{} with {} GPU{}{}, {} hardware threads", counted(node.count, "node"),
                       node.gpus ? std::to_string(*node.gpus) : "?", node.gpus == 1 ? "" : "s",
                       node.gpu_model.empty() ? "" : " (" + node.gpu_model + ")", node.cpus ? std::to_string(*node.cpus) : "?");
}

std::string node_text(cluster_facts const& facts) {
    if (facts.shapes.empty()) return "\n# Its nodes are not known.\n# [node]\n# gpus = 4\n# cores = 64\n# cpus = 128\n";
    auto const& node = facts.shapes.front();
    std::string text = "\n[node]\n";
    auto const line = [&](std::string_view key, std::optional<int> value) {
        text += value && *value > 0 ? fmt::format("{} = {}\n", key, *value) : fmt::format("# {} = ? # not known\n", key);
    };
    line("count", node.count);
    if (is_without_gpus(facts)) {
        text += fmt::format("gpus = 0 # {}\n",
                            facts.scheduler == script_kind::local ? "NVML sees none" : "the scheduler knows of none");
    } else {
        line("gpus", node.gpus);
        text += node.gpu_model.empty() ? "# gpu_model = \"?\" # not known\n"
                                       : fmt::format("gpu_model = {}\n", toml_text(node.gpu_model));
    }
    line("cores", node.cores);
    line("cpus", node.cpus);
    for (std::size_t i = 1; i < facts.shapes.size(); ++i) text += fmt::format("# other nodes: {}\n", describe(facts.shapes[i]));
    return text;
}

std::string account_text(cluster_facts const& facts) {
    if (facts.scheduler == script_kind::local) return {};
    std::string text = facts.account_required
                           ? fmt::format("account = \"{}\"\n", *facts.account_required ? "required" : "optional")
                           : "# account = \"required\" # not known whether one is needed\n";
    if (!facts.accounts.empty()) text += fmt::format("account_hint = {}\n", toml_text("one of " + join(facts.accounts, ", ")));
    return text;
}

std::string header_text(cluster_facts const& facts) {
    if (facts.scheduler == script_kind::local) return {};
    auto text = "\n[header]\n" + account_text(facts);
    bool const slurm = facts.scheduler == script_kind::slurm;
    bool const flux = facts.scheduler == script_kind::flux;
    if ((slurm || flux) && (is_without_gpus(facts) || (flux && facts.shapes.empty())))
        text += fmt::format("gpus_by = \"none\" # {} knows of no GPU: ask for --ranks\n", slurm ? "Slurm" : "Flux");
    else if (slurm)
        text += "gpus_by = \"gres\" # understood by every Slurm; gpus-per-node is newer\n";
    if (slurm) text += "queue_option = \"partition\"\n";
    if (!slurm && !flux) text += "place = \"scatter\" # one chunk a host, so that a chunk is a node\n";
    for (auto const& queue : facts.queues)
        if (queue.is_default && queue.closed.empty() && !find_fault(queue.name, directive_text::name))
            text += fmt::format("default_queue = {}\n", toml_text(queue.name));
    auto const* node = facts.shapes.empty() ? nullptr : &facts.shapes.front();
    if (slurm && node != nullptr && node->gpus > 0 && node->cpus)
        text += fmt::format("cpus_per_gpu = {}\n", std::max(1, *node->cpus / *node->gpus));
    return text;
}

std::string limits_text(queue_facts const& queue) {
    auto text = queue.max_nodes ? fmt::format("max_nodes = {}\n", *queue.max_nodes) : "# max_nodes = ? # not known\n";
    if (queue.min_walltime && queue.min_walltime->count() > 0)
        text += fmt::format("min_walltime = \"{}\"\n", format_walltime(*queue.min_walltime));
    if (queue.unlimited_time)
        return text + "max_walltime = \"8784h\" # the queue has no limit; this is the longest time that muster takes\n";
    if (queue.max_walltime && queue.max_walltime->count() > 0)
        return text + fmt::format("max_walltime = \"{}\"\n", format_walltime(*queue.max_walltime));
    return text + "# max_walltime = \"?\" # not known\n";
}

/// Returns what the nodes of a queue have, if it differs from [node].
std::string queue_nodes_text(queue_facts const& queue, cluster_facts const& facts) {
    auto const found = facts.queue_shapes.find(queue.name);
    if (found == facts.queue_shapes.end() || found->second.empty() || found->second.front().count == 0) return {};
    std::string text;
    auto const& shapes = found->second;
    auto const& own = shapes.front();
    auto const& usual = facts.shapes.front();
    if (std::tuple(own.gpus, own.cores, own.cpus) != std::tuple(usual.gpus, usual.cores, usual.cpus)) {
        if (own.gpus) text += fmt::format("gpus = {}\n", *own.gpus);
        if (own.cores) text += fmt::format("cores = {}\n", *own.cores);
        if (own.cpus) text += fmt::format("cpus = {}\n", *own.cpus);
    }
    int with = 0, all = 0;
    for (auto const& shape : shapes) {
        with += shape.gpus > 0 ? shape.count : 0;
        all += shape.count;
    }
    if (with > 0 && with < all) text += fmt::format("max_gpu_nodes = {} # the others have no GPU\n", with);
    return text;
}

std::string queue_text(queue_facts const& queue, cluster_facts const& facts) {
    auto const& all = facts.queues;
    // No directive can contain such a name.
    if (find_fault(queue.name, directive_text::name))
        return fmt::format("\n# A queue called {} is left out.\n", toml_text(queue.name));
    if (!queue.closed.empty())
        return fmt::format("\n# The queue {} {}.\n", toml_text(queue.name), without_controls(queue.closed));
    auto text = fmt::format("\n[[queue]]\nname = {}\n", toml_text(queue.name));
    if (!queue.accounts.empty()) text += fmt::format("accounts = {}\n", toml_list(queue.accounts));
    if (queue.routes_to.empty()) return text + limits_text(queue) + queue_nodes_text(queue, facts);
    text += fmt::format("note = {}\n", toml_text("routes to " + join(queue.routes_to, ", ")));
    text += limits_text(queue);
    for (auto const& target : queue.routes_to) {
        auto const name = target.substr(0, target.find('@'));  // "small@server"
        auto const found = std::ranges::find_if(all, [&](auto const& other) { return other.name == name; });
        if (found == all.end() || find_fault(name, directive_text::name)) continue;
        text += fmt::format("\n[[queue.route]]\nname = {}\n{}", toml_text(name), limits_text(*found));
    }
    return text;
}

}  // namespace

std::string site_file_text(cluster_facts const& facts, std::string_view name, std::string_view date) {
    auto unknown = facts.unknown;
    for (auto const* what : {"which modules jobs need", "the network's variables", "paths of scratch and of node-local disks",
                             "which GPU is next to which cores: muster sees that on the nodes"})
        unknown.emplace_back(what);
    auto text = fmt::format(
        "# Written by muster site init on {}. Correct it and complete it: docs/sites.md has every key.\nname = {}\n"
        "description = {}\nscheduler = \"{}\"\n\n[source]\nfacts = {}\ndate = {}\nunknown = {}\n",
        date, toml_text(name), toml_text(fmt::format("{}, as it tells of itself", name)), to_string(facts.scheduler),
        toml_text(facts.source), date, toml_list(unknown));
    text += node_text(facts) + header_text(facts);
    for (auto const& queue : facts.queues) text += queue_text(queue, facts);
    if (!facts.qualities.empty())
        text += fmt::format(
            "\n# Qualities of service that you may ask for (queue_option = \"qos\" in [header], and --queue NAME): {}\n",
            toml_list(facts.qualities));
    if (!facts.modules.empty()) text += fmt::format("\n# Modules that there are, among others: {}", toml_list(facts.modules));
    text +=
        "\n# [script]\n# modules = [\"cuda\"]\n# setup = [\"source ~/venv/bin/activate\"]\n"
        "\n# [paths]\n# scratch = \"/scratch/$USER\"\n# node_local = \"/tmp\"\n"
        "\n# [settings]\n# network-interface = \"ib0\"\n";
    return text;
}

}  // namespace muster
