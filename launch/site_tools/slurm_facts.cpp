// Reads what sinfo and scontrol report about a cluster.

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/letters.hpp"
#include "base/text.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/site_tools/cluster_facts.hpp"

namespace muster {

namespace {

constexpr std::size_t sinfo_columns = 10;  ///< the last one lists the nodes' names
constexpr std::size_t least_columns = 4;   ///< up to the number of nodes: a shorter line is no row

/// Holds the nodes of each shape, by the shape's index.
using shape_nodes = std::vector<std::set<std::string>>;

/// Reads "4", "8+": the least number among the nodes of a row. Slurm writes 2048 as "2K".
std::optional<int> count_in(std::string_view text) {
    text = trim(text);
    if (!text.empty() && text.back() == '+') text.remove_suffix(1);
    int const unit = !text.empty() && text.back() == 'K' ? 1024 : 1;
    if (unit > 1) text.remove_suffix(1);
    auto const number = parse_integer(text);
    return number && *number > 0 && *number <= 1'000'000 / unit ? std::optional(static_cast<int>(*number) * unit) : std::nullopt;
}

/// Reads the GPUs of "gpu:a100:4(S:0-1),nvme:1" and their model.
void read_gres(std::string_view gres, node_facts& node) {
    if (trim(gres).empty()) return;  // not known; "(null)" means no GPU
    node.gpus = 0;
    for (auto item : split(gres, ',')) {
        item = trim(item);
        if (item.starts_with("gres/")) item.remove_prefix(5);
        item = item.substr(0, item.find('('));
        auto words = split(item, ':');
        if (words.front() != "gpu") continue;
        // "gpu" and "gpu:a100" mean one GPU; "gpu:0" means no GPU.
        bool const counted = words.size() > 1 && parse_integer(words.back());
        *node.gpus += counted ? count_in(words.back()).value_or(0) : 1;
        if (counted) words.pop_back();
        if (words.size() >= 2) node.gpu_model = std::string(words[1]);
    }
}

/// Reads "1-4" or "1-infinite".
std::optional<int> most_nodes_of(std::string_view size) {
    auto const dash = size.find('-');
    return count_in(dash == std::string_view::npos ? size : size.substr(dash + 1));
}

queue_facts& queue_named(std::vector<queue_facts>& queues, std::string const& name) {
    auto found = std::ranges::find_if(queues, [&](auto const& q) { return q.name == name; });
    if (found == queues.end()) found = queues.insert(queues.end(), queue_facts{.name = name});
    return *found;
}

void read_queue(std::vector<std::string_view> const& row, cluster_facts& facts) {
    auto name = trim(row[0]);
    bool const is_default = !name.empty() && name.back() == '*';
    if (is_default) name.remove_suffix(1);
    if (name.empty()) return;
    auto& queue = queue_named(facts.queues, std::string(name));
    queue.is_default = is_default;
    queue.unlimited_time = trim(row[1]) == "infinite";
    try {
        if (!queue.unlimited_time) queue.max_walltime = parse_duration(trim(row[1]));
    } catch (error const&) {  // "n/a"
    }
    // A job cannot be larger than the partition.
    auto const nodes = queue.max_nodes.value_or(0) + count_in(row[3]).value_or(0);
    if (nodes > 0) queue.max_nodes = nodes;
}

void limit_nodes(std::vector<std::string_view> const& row, cluster_facts& facts) {
    auto name = trim(row[0]);
    if (!name.empty() && name.back() == '*') name.remove_suffix(1);
    auto const most = most_nodes_of(trim(row[2]));
    for (auto& queue : facts.queues)
        if (queue.name == name && most && queue.max_nodes) queue.max_nodes = std::min(*queue.max_nodes, *most);
}

/// Returns the names in a row; empty if it has none.
std::vector<std::string> names_in(std::vector<std::string_view> const& row) {
    auto const names = trim(row[sinfo_columns - 1]);
    if (names.empty()) return {};
    try {
        return expand_hostlist(names, "sinfo %N");
    } catch (error const&) {  // "(null)"
        return {};
    }
}

/// Returns the node of a row, and the index of its shape among others.
std::pair<node_facts, std::size_t> read_node(std::vector<std::string_view> const& row, std::vector<node_facts> const& among) {
    node_facts node;
    auto const sockets = count_in(row[5]), cores = count_in(row[6]), threads = count_in(row[7]);
    node.cpus = count_in(row[4]);
    if (sockets && cores) node.cores = *sockets * *cores;
    // A site may declare cores as its CPUs.
    if (node.cpus && node.cores && *node.cpus < *node.cores) node.cores = node.cpus;
    if (threads && *threads == 1 && node.cpus) node.cores = node.cpus;
    read_gres(row[8], node);
    auto const same = std::ranges::find_if(among, [&](node_facts other) {
        other.count = 0;
        return other == node;
    });
    return {node, static_cast<std::size_t>(same - among.begin())};
}

void read_shape(std::vector<std::string_view> const& row, cluster_facts& facts, shape_nodes& nodes) {
    auto const [node, at] = read_node(row, facts.shapes);
    if (at == facts.shapes.size()) {
        facts.shapes.push_back(node);
        nodes.emplace_back();
    }
    for (auto& name : names_in(row)) nodes[at].insert(std::move(name));
    // Several partitions may contain the same nodes: without their names, only the largest number is certain.
    auto& count = facts.shapes[at].count;
    count = std::max({count, count_in(row[3]).value_or(0), static_cast<int>(nodes[at].size())});
}

void read_queue_shape(std::vector<std::string_view> const& row, cluster_facts& facts) {
    auto name = trim(row[0]);
    if (name.ends_with('*')) name.remove_suffix(1);
    auto& shapes = facts.queue_shapes[std::string(name)];
    auto const [node, at] = read_node(row, shapes);
    if (at == shapes.size()) shapes.push_back(node);
    shapes[at].count += count_in(row[3]).value_or(0);
}

/// Puts the shape to use first in front: one with GPUs, and the most nodes.
void sort_shapes(std::vector<node_facts>& shapes) {
    std::ranges::stable_sort(shapes, [](node_facts const& a, node_facts const& b) {
        return std::tuple(a.gpus > 0, a.count, a.gpus) > std::tuple(b.gpus > 0, b.count, b.gpus);
    });
}

/// Returns the value of "ClusterName            = muster".
std::string config_value(std::string_view config, std::string_view key) {
    for (auto const line : split(config, '\n')) {
        auto const equals = line.find('=');
        if (equals == std::string_view::npos || trim(line.substr(0, equals)) != key) continue;
        return std::string(trim(line.substr(equals + 1)));
    }
    return {};
}

}  // namespace

cluster_facts read_slurm_facts(std::string_view sinfo, std::string_view config) {
    cluster_facts facts{.scheduler = script_kind::slurm, .source = "sinfo and scontrol show config"};
    std::vector<std::vector<std::string_view>> rows;
    for (auto const line : split(sinfo, '\n'))
        if (auto row = split(line, '|'); row.size() >= least_columns) {
            row.resize(std::max(row.size(), sinfo_columns));  // missing columns are empty
            rows.push_back(std::move(row));
        }
    shape_nodes nodes;
    for (auto const& row : rows) {
        read_queue(row, facts);
        read_shape(row, facts, nodes);
        read_queue_shape(row, facts);
    }
    for (auto const& row : rows) limit_nodes(row, facts);
    sort_shapes(facts.shapes);
    for (auto& [name, shapes] : facts.queue_shapes) sort_shapes(shapes);
    facts.name = config_value(config, "ClusterName");
    auto const enforced = config_value(config, "AccountingStorageEnforce");
    if (!enforced.empty()) facts.account_required = enforced.find("associations") != std::string::npos;
    return facts;
}

void read_partitions(std::string_view records, cluster_facts& facts) {
    for (auto const record : split(records, '\n')) {
        std::map<std::string_view, std::string_view> values;
        for (auto const word : split(record, ' '))
            if (auto const equals = word.find('='); equals != word.npos)
                values.emplace(word.substr(0, equals), word.substr(equals + 1));
        auto const queue = std::ranges::find(facts.queues, values["PartitionName"], &queue_facts::name);
        if (queue == facts.queues.end()) continue;
        auto const state = values["State"], allowed = values["AllowAccounts"];
        if (!allowed.empty() && allowed != "ALL")
            for (auto const account : split(allowed, ',')) queue->accounts.emplace_back(account);
        bool const foreign = !queue->accounts.empty() && !facts.accounts.empty() &&
                             std::ranges::find_first_of(queue->accounts, facts.accounts) == queue->accounts.end();
        if (!state.empty() && state != "UP")
            queue->closed = "runs no jobs now: its state is " + std::string(state);
        else if (values["RootOnly"] == "YES")
            queue->closed = "takes jobs of root alone";
        else if (foreign)
            queue->closed = "takes jobs of the accounts " + join(queue->accounts, ", ") + " alone, and yours are " +
                            join(facts.accounts, ", ");
    }
}

void read_associations(std::string_view printed, cluster_facts& facts) {
    std::set<std::string> accounts, qualities;
    for (auto const line : split(printed, '\n')) {
        auto const fields = split(line, '|');
        if (auto const name = trim(fields[0]); !name.empty()) accounts.emplace(name);
        if (fields.size() < 2) continue;
        for (auto const one : split(fields[1], ','))
            if (auto const name = trim(one); !name.empty()) qualities.emplace(name);
    }
    facts.accounts.assign(accounts.begin(), accounts.end());
    facts.qualities.assign(qualities.begin(), qualities.end());
}

std::vector<std::string> choose_modules(std::string_view printed) {
    constexpr std::array<std::string_view, 16> wanted{
        "cuda",  "cudatoolkit", "cudnn",  "nccl",      "rocm",       "rccl",       "oneapi",    "openmpi",
        "mpich", "cray-mpich",  "python", "anaconda3", "miniconda3", "miniforge3", "apptainer", "singularity"};
    constexpr std::size_t most = 16;
    std::vector<std::string> found;
    for (auto line : split(printed, '\n')) {
        line = trim(line.substr(0, line.find('(')));  // "cuda/12.2(default)"
        if (line.empty() || line.ends_with(':') || line.ends_with('/')) continue;
        auto const name = lower_case(line.substr(0, line.find('/')));
        bool const takes = std::ranges::find(wanted, name) != wanted.end();
        if (takes && std::ranges::find(found, line) == found.end() && found.size() < most) found.emplace_back(line);
    }
    return found;
}

}  // namespace muster
