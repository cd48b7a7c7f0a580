#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cpuset.hpp"
#include "base/error.hpp"
#include "jobscripts/quote.hpp"
#include "launch/settings/settings_file.hpp"
#include "launch/settings/toml_reader.hpp"
#include "launch/site/site.hpp"

namespace muster {

namespace {

// These throw toml_fault as toml_reader does.

// Reads what a site file says about directives and queues.

constexpr int most_nodes = 1'000'000;
constexpr int most_cpus_a_gpu = 65536;
constexpr int most_gpus = 1024;  // on one node; the same holds for the next
constexpr int most_cpus = 65536;
constexpr int most_gpus_a_job = 1'000'000;

/// Returns the optional text of `key`, checked for use in a directive.
std::string directive_of(toml_reader const& in, std::string_view key, directive_text kind) {
    auto const value = in.text(key);
    if (!value) return {};
    if (auto const fault = find_fault(*value, kind))
        in.refuse(key, fmt::format("'{}', character {}: {}", key, fault->offset + 1, fault->why));
    return *value;
}

/// Refuses keys of `header` that belong to another scheduler, since they would have no effect.
void check_scheduler(toml_reader const& in, script_kind scheduler) {
    using enum script_kind;
    constexpr std::array<std::pair<std::string_view, std::array<script_kind, 2>>, 8> owners{{{"queue_option", {slurm, slurm}},
                                                                                             {"gpus_by", {slurm, flux}},
                                                                                             {"constraint", {slurm, flux}},
                                                                                             {"whole_nodes", {pbs, flux}},
                                                                                             {"chunk", {pbs, pbs}},
                                                                                             {"place", {pbs, pbs}},
                                                                                             {"filesystems", {pbs, pbs}},
                                                                                             {"attributes", {cobalt, cobalt}}}};
    for (auto const& [key, of] : owners)
        if (of[0] != scheduler && of[1] != scheduler && in.has(key))
            in.refuse_key(key, fmt::format("'{}' is for {}{}, and this site's scheduler is {}", key, to_string(of[0]),
                                           of[1] == of[0] ? "" : fmt::format(" and {}", to_string(of[1])), to_string(scheduler)));
}

site_header read_site_header(toml_document const& document, toml::table const& table, script_kind scheduler) {
    constexpr std::array<std::string_view, 15> known{
        "account", "account_hint", "queue",       "default_queue", "queue_option", "gpus_by",     "constraint",  "whole_nodes",
        "chunk",   "place",        "filesystems", "attributes",    "directives",   "login_shell", "cpus_per_gpu"};
    constexpr std::array<std::string_view, 2> demand{"optional", "required"};
    constexpr std::array<std::string_view, 2> queue_options{"partition", "qos"};
    constexpr std::array<std::string_view, 3> gpus_by{"gpus-per-node", "gres", "none"};
    toml_reader const in(document, table, "header", known);
    check_scheduler(in, scheduler);
    site_header header;
    header.account_required = in.choice("account", demand) == "required";
    header.account_hint = in.text("account_hint").value_or("");
    header.queue_required = in.choice("queue", demand) == "required";
    header.default_queue = directive_of(in, "default_queue", directive_text::name);
    header.queue_is_qos = in.choice("queue_option", queue_options) == "qos";
    auto const by = in.choice("gpus_by", gpus_by);
    header.gpus_by = by == "gres" ? gpu_request::gres : by == "none" ? gpu_request::none : gpu_request::gpus_per_node;
    header.constraint = directive_of(in, "constraint", directive_text::expression);
    header.whole_nodes = in.flag("whole_nodes", false);
    header.chunk = directive_of(in, "chunk", directive_text::resource);
    header.place = directive_of(in, "place", directive_text::resource);
    header.filesystems = directive_of(in, "filesystems", directive_text::resource);
    header.attributes = directive_of(in, "attributes", directive_text::resource);
    header.directives = in.texts("directives");
    for (auto const& text : header.directives)
        if (auto const fault = find_fault(text, directive_text::directive))
            in.refuse("directives", fmt::format("'{}', character {}: {}", text, fault->offset + 1, fault->why));
    header.cpus_per_gpu = in.integer("cpus_per_gpu", 1, most_cpus_a_gpu);
    header.login_shell = in.flag("login_shell", false);
    return header;
}

queue_limits read_limits(toml_reader const& in) {
    queue_limits limits;
    limits.min_nodes = in.integer("min_nodes", 1, most_nodes).value_or(1);
    limits.max_nodes = in.integer("max_nodes", 1, most_nodes);
    if (limits.max_nodes && *limits.max_nodes < limits.min_nodes) in.refuse("max_nodes", "'max_nodes' is below 'min_nodes'");
    limits.min_walltime = in.time("min_walltime");
    limits.max_walltime = in.time("max_walltime");
    if (limits.max_walltime && *limits.max_walltime <= limits.min_walltime.value_or(duration(0)))
        in.refuse("max_walltime", "'max_walltime' is not above 'min_walltime'");
    return limits;
}

/// Returns the table's 'name', which must be unique among `before`.
template <typename T>
std::string read_name(toml_reader const& in, std::vector<T> const& before) {
    in.required_text("name");
    auto name = directive_of(in, "name", directive_text::name);
    if (std::ranges::any_of(before, [&](T const& other) { return other.name == name; }))
        in.refuse("name", fmt::format("a second one named '{}'", name));
    return name;
}

/// Reads how a queue counts GPUs: which numbers it takes, and whether PBS' select counts them.
void read_gpu_counts(toml_reader const& in, site_queue& queue, script_kind scheduler) {
    constexpr std::array<std::string_view, 2> units{"nodes", "gpus"};
    queue.select_gpus = in.choice("select", units) == "gpus";
    if (in.has("select") && scheduler != script_kind::pbs)
        in.refuse_key("select", fmt::format("'select' is for pbs, and this site's scheduler is {}", to_string(scheduler)));
    queue.gpu_counts = in.integers("gpu_counts", 1, most_gpus_a_job);
}

site_queue read_site_queue(toml_document const& document, toml::table const& table, std::vector<site_queue> const& before,
                           script_kind scheduler) {
    constexpr std::array<std::string_view, 14> known{"name",         "note",     "min_nodes", "max_nodes",    "min_walltime",
                                                     "max_walltime", "accounts", "route",     "select",       "gpu_counts",
                                                     "gpus",         "cores",    "cpus",      "max_gpu_nodes"};
    constexpr std::array<std::string_view, 5> known_of_route{"name", "min_nodes", "max_nodes", "min_walltime", "max_walltime"};
    toml_reader const in(document, table, "queue", known);
    site_queue queue;
    queue.name = read_name(in, before);
    queue.note = in.text("note").value_or("");
    queue.limits = read_limits(in);
    read_gpu_counts(in, queue, scheduler);
    queue.gpus = in.integer("gpus", 0, most_gpus);
    queue.cores = in.integer("cores", 1, most_cpus);
    queue.cpus = in.integer("cpus", 1, most_cpus);
    if (queue.cores && queue.cpus && *queue.cpus < *queue.cores)
        in.refuse("cpus", "'cpus' is smaller than 'cores'; give the number of hardware threads");
    queue.accounts = in.texts("accounts");
    queue.max_gpu_nodes = in.integer("max_gpu_nodes", 0, most_nodes);
    for (auto const* route : in.tables("route")) {
        toml_reader const route_in(document, *route, fmt::format("route of queue '{}'", queue.name), known_of_route);
        auto name = read_name(route_in, queue.routes);
        queue.routes.push_back({std::move(name), read_limits(route_in)});
    }
    return queue;
}

// Reads what a site file says about a node.

/// Returns the GPU nearest to each rank if ranks fill the cores from 0 upwards, as the map of cores implies.
std::vector<int> order_by_first_cpu(std::vector<int> const& first_cpus) {
    std::vector<int> gpus(first_cpus.size());
    std::iota(gpus.begin(), gpus.end(), 0);
    std::ranges::sort(
        gpus, [&](int a, int b) { return first_cpus[static_cast<std::size_t>(a)] < first_cpus[static_cast<std::size_t>(b)]; });
    return gpus;
}

void check_gpu_cpus(toml_reader const& in, site_node const& node) {
    std::set<int> seen;
    std::vector<int> firsts;
    for (auto const& list : node.gpu_cpus) {
        int const most = node.cpus.value_or(most_cpus);
        auto const near = cpuset::from_list_or_none(list);
        if (near.empty() || near.cpus.back() >= most)
            in.refuse("gpu_cpus", fmt::format("'{}' is no list of hardware threads below {}, such as \"0-7,32-39\"", list, most));
        for (int const cpu : near.cpus)
            if (!seen.insert(cpu).second)
                in.refuse("gpu_cpus", fmt::format("hardware thread {} is named twice; remove one", cpu));
        firsts.push_back(near.cpus.front());
    }
    if (!node.nearest_gpu.empty() && !firsts.empty() && order_by_first_cpu(firsts) != node.nearest_gpu)
        in.refuse("nearest_gpu",
                  "does not agree with 'gpu_cpus': ranks that fill the cores from 0 upwards meet the GPUs in another order");
}

void check_per_gpu(toml_reader const& in, std::string_view key, std::size_t size, std::optional<int> gpus) {
    if (size == 0) return;
    if (!gpus) in.refuse(key, fmt::format("'{}' needs the number of GPUs too: 'gpus'", key));
    if (size != static_cast<std::size_t>(*gpus)) in.refuse(key, fmt::format("'{}' has {} entries for {} GPUs", key, size, *gpus));
}

site_node read_site_node(toml_document const& document, toml::table const& table) {
    constexpr std::array<std::string_view, 10> known{"count",    "gpus",     "gpu_model",   "cores",   "cpus",
                                                     "gpu_cpus", "gpu_numa", "nearest_gpu", "nic_gpu", "topology"};
    toml_reader const in(document, table, "node", known);
    site_node node;
    node.count = in.integer("count", 1, most_nodes);
    node.gpus = in.integer("gpus", 0, most_gpus);
    node.gpu_model = in.text("gpu_model").value_or("");
    node.cores = in.integer("cores", 1, most_cpus);
    node.cpus = in.integer("cpus", 1, most_cpus);
    if (node.cores && node.cpus && *node.cpus < *node.cores)
        in.refuse("cpus", "'cpus' is smaller than 'cores'; give the number of hardware threads");
    int const last_gpu = node.gpus.value_or(most_gpus) - 1;
    node.gpu_cpus = in.texts("gpu_cpus");
    node.gpu_numa = in.integers("gpu_numa", 0, most_cpus);
    node.nearest_gpu = in.integers("nearest_gpu", 0, last_gpu);
    node.nic_gpu = in.integers("nic_gpu", 0, last_gpu);
    node.topology = in.text("topology").value_or("");
    check_per_gpu(in, "gpu_cpus", node.gpu_cpus.size(), node.gpus);
    check_per_gpu(in, "gpu_numa", node.gpu_numa.size(), node.gpus);
    check_per_gpu(in, "nearest_gpu", node.nearest_gpu.size(), node.gpus);
    if (std::set<int>(node.nearest_gpu.begin(), node.nearest_gpu.end()).size() != node.nearest_gpu.size())
        in.refuse("nearest_gpu", "a GPU is named twice; remove one");
    check_gpu_cpus(in, node);
    return node;
}

// Reads a site file by its schema.

std::vector<std::pair<std::string, std::string>> read_environment(toml_document const& document, toml_reader const& root,
                                                                  std::string const& key) {
    std::vector<std::pair<std::string, std::string>> variables;
    auto const* table = root.table(key);
    if (!table) return variables;
    toml_reader const in(document, *table, key);
    for (auto const& [variable, value] : *table) {
        auto const name = variable.str();
        if (!is_variable_name(name))
            in.refuse_key(name, "a variable's name holds letters, digits and _, and begins with no digit");
        variables.emplace_back(name, in.required_text(name));
    }
    return variables;
}

script_kind read_scheduler(toml_reader const& root) {
    constexpr std::array<std::string_view, 5> schedulers{"slurm", "pbs", "cobalt", "flux", "local"};
    root.required_text("scheduler");
    auto const name = root.choice("scheduler", schedulers);
    for (auto const kind : {script_kind::slurm, script_kind::pbs, script_kind::cobalt, script_kind::flux})
        if (to_string(kind) == name) return kind;
    return script_kind::local;
}

site_fact read_fact(toml_document const& document, toml::table const& table, std::string const& path,
                    std::span<std::string_view const> known) {
    toml_reader const in(document, table, path, known);
    site_fact fact;
    fact.source = in.required_text("facts");
    auto const date = in.date("date");
    if (!date) in.refuse("date", "'date' is missing; add when the facts were looked up, such as 2026-01-31");
    fact.date = *date;
    return fact;
}

/// Reads [source], and [source.SECTION] for a section whose facts come from elsewhere.
void read_source(toml_document const& document, toml_reader const& root, site& result) {
    constexpr std::array<std::string_view, 12> known{
        "facts", "date",     "unknown",          "node", "header", "queue", "script", "environment", "environment_multi_node",
        "paths", "settings", "script_multi_node"};
    constexpr std::array<std::string_view, 2> known_of_section{"facts", "date"};
    auto const* table = root.table("source");
    if (!table) root.refuse("source", "[source] is missing; add it with 'facts' (where they are from) and 'date'");
    auto const fact = read_fact(document, *table, "source", known);
    result.source = fact.source;
    result.source_date = fact.date;
    toml_reader const in(document, *table, "source", known);
    result.unknown = in.texts("unknown");
    for (auto const section : std::span(known).subspan(3))
        if (auto const* own = in.table(section))
            result.section_sources.emplace(section,
                                           read_fact(document, *own, "source." + std::string(section), known_of_section));
}

void read_script(toml_document const& document, toml_reader const& root, site& result) {
    constexpr std::array<std::string_view, 4> known{"modules", "setup", "container_runtime", "container_args"};
    constexpr std::array<std::string_view, 3> runtimes{"apptainer", "singularity", "pyxis"};
    auto const* table = root.table("script");
    if (!table) return;
    toml_reader const in(document, *table, "script", known);
    result.modules = in.texts("modules");
    result.setup = in.texts("setup");
    if (in.has("container_runtime")) result.container_runtime = in.choice("container_runtime", runtimes);
    if (in.has("container_args")) result.container_args = in.texts("container_args");
}

void read_script_multi_node(toml_document const& document, toml_reader const& root, site& result) {
    constexpr std::array<std::string_view, 2> known{"modules", "setup"};
    auto const* table = root.table("script_multi_node");
    if (!table) return;
    toml_reader const in(document, *table, "script_multi_node", known);
    result.modules_multi_node = in.texts("modules");
    result.setup_multi_node = in.texts("setup");
}

void read_paths(toml_document const& document, toml_reader const& root, site& result) {
    constexpr std::array<std::string_view, 2> known{"scratch", "node_local"};
    auto const* table = root.table("paths");
    if (!table) return;
    toml_reader const in(document, *table, "paths", known);
    result.scratch = in.text("scratch").value_or("");
    result.node_local = in.text("node_local").value_or("");
    if (!result.node_local.empty() && result.node_local.front() != '/')
        in.refuse("node_local", "'node_local' is no whole path; begin it with '/'");
    if (result.node_local.find('$') != std::string::npos)
        in.refuse("node_local",
                  "'node_local' holds a '$', and the path is taken as it is, without variables; give one that is the same for "
                  "all users");
}

/// NCCL ends a program whose NCCL_NET names a plugin that it does not find, so the file must also load the plugin.
void check_plugin(toml_reader const& root, site const& where) {
    auto const check = [&](std::string_view section, auto const& variables, bool loaded) {
        for (auto const& [name, value] : variables)
            if (name == "NCCL_NET" && value != "IB" && value != "Socket" && !loaded)
                root.refuse(section, fmt::format("NCCL_NET = \"{}\" needs a plugin, and nothing here loads it; add its module or "
                                                 "its path under [script{}], or remove NCCL_NET",
                                                 value, section == "environment" ? "" : "_multi_node"));
    };
    bool const always = !where.modules.empty() || !where.setup.empty();
    check("environment", where.environment, always);
    check("environment_multi_node", where.environment_multi_node,
          always || !where.modules_multi_node.empty() || !where.setup_multi_node.empty());
}

void read_queues(toml_document const& document, toml_reader const& root, site& result) {
    for (auto const* table : root.tables("queue"))
        result.queues.push_back(read_site_queue(document, *table, result.queues, result.scheduler));
    auto const& preferred = result.header.default_queue;
    if (!preferred.empty() && !result.queues.empty() &&
        std::ranges::none_of(result.queues, [&](auto const& queue) { return queue.name == preferred; }))
        root.refuse("header", fmt::format("'default_queue' is '{}', which is none of the queues of this file", preferred));
}

}  // namespace

site parse_site(toml_document const& document) {
    constexpr std::array<std::string_view, 14> known{
        "name",   "description",       "scheduler",   "decommissioned",         "source",   "node", "header", "queue",
        "script", "script_multi_node", "environment", "environment_multi_node", "settings", "paths"};
    toml_reader const root(document, document.root, "", known);
    site result;
    root.required_text("name");
    result.name = directive_of(root, "name", directive_text::name);
    result.description = root.required_text("description");
    result.scheduler = read_scheduler(root);
    result.decommissioned = root.flag("decommissioned", false);
    read_source(document, root, result);
    if (auto const* table = root.table("node")) result.node = read_site_node(document, *table);
    if (auto const* table = root.table("header")) result.header = read_site_header(document, *table, result.scheduler);
    read_queues(document, root, result);
    read_script(document, root, result);
    read_script_multi_node(document, root, result);
    read_paths(document, root, result);
    result.environment = read_environment(document, root, "environment");
    result.environment_multi_node = read_environment(document, root, "environment_multi_node");
    check_plugin(root, result);
    if (auto const* table = root.table("settings")) result.settings = read_settings(document, *table, "settings", "site");
    return result;
}

site parse_site(std::string_view text, std::string_view origin) {
    return parse_site(toml_document::parse(text, origin));
}

}  // namespace muster
