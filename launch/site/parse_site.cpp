// Reads a site file by its schema.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "launch/settings/settings_section.hpp"
#include "launch/site/site_sections.hpp"

namespace muster {

namespace {

std::vector<std::pair<std::string, std::string>> read_environment(toml_document const& document, toml_reader const& root,
                                                                  std::string const& key) {
    std::vector<std::pair<std::string, std::string>> variables;
    auto const* table = root.table(key);
    if (!table) return variables;
    std::vector<std::string_view> own_keys;
    for (auto const& [name, value] : *table) own_keys.push_back(name.str());
    toml_reader const in(document, *table, key, own_keys);
    for (auto const name : own_keys) {
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

/// [source], and [source.SECTION] for a section whose facts are from elsewhere.
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

/// NCCL ends a program whose NCCL_NET names a plugin that it does not find: so what loads the plugin must stand here too.
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
        std::none_of(result.queues.begin(), result.queues.end(), [&](auto const& queue) { return queue.name == preferred; }))
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
