#include "jobscripts/render.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <kainjow/mustache.hpp>

#include "base/embedded_text.hpp"
#include "base/error.hpp"
#include "jobscripts/quote.hpp"

namespace muster {

namespace {

using kainjow::mustache::data;
using kainjow::mustache::mustache;
using kainjow::mustache::partial;

constexpr double longest_walltime_s = 366 * 86400.0;

std::string built_in(std::string_view name) {
    return std::string(find_text(script_templates(), fmt::format("{}.mustache", name)));
}

/// A count as text, checked.
std::string counted(std::string_view what, int value, int least) {
    if (value < least)
        throw error(errc::usage, fmt::format("a script for {} {} is not possible; give at least {}", value, what, least));
    return std::to_string(value);
}

data list_of(std::vector<std::string> const& words) {
    data list = data::type::list;
    for (auto const& word : words) list.push_back(word);
    return list;
}

/// Sets `name`, and has_`name` for the sections, to a value that a directive may hold.
void set_directive(data& values, std::string const& name, std::string_view value, directive_text kind) {
    values.set("has_" + name, !value.empty());
    if (!value.empty()) values.set(name, directive_value(name, value, kind));
}

std::string checked_walltime(script_request const& request) {
    if (!(request.walltime.count() > 0) || request.walltime.count() > longest_walltime_s)
        throw error(errc::usage, fmt::format("a walltime of {} s is not possible; give one of at most 366 days, such as 1:30:00",
                                             request.walltime.count()));
    return format_walltime(request.walltime);
}

void set_shape(data& values, script_request const& request) {
    values.set("nodes", counted("nodes", request.nodes, 1));
    values.set("ranks_per_node", counted("ranks a node", request.ranks_per_node, 1));
    values.set("cpus_per_rank", counted("CPUs a rank", request.cpus_per_rank, 0));
    values.set("has_cpus", request.cpus_per_rank > 0);
    auto const ranks = std::int64_t{request.nodes} * request.ranks_per_node;
    auto const cpus = std::int64_t{request.ranks_per_node} * std::max(1, request.cpus_per_rank);
    values.set("ranks", std::to_string(ranks));
    values.set("cpus_per_node", std::to_string(cpus));
    values.set("whole_nodes", request.whole_nodes);
    values.set("gpus_per_node", request.gpus_by == gpu_request::gpus_per_node);
    values.set("gres", request.gpus_by == gpu_request::gres);
    values.set("has_gpus", request.gpus_by != gpu_request::none);
    if (request.kind == script_kind::local) return;
    values.set("walltime", checked_walltime(request));
    values.set("minutes", std::to_string(static_cast<long>(std::ceil(request.walltime.count() / 60))));
}

void set_directives(data& values, script_request const& request) {
    values.set("job_name", directive_value("job name", request.job_name, directive_text::name));
    set_directive(values, "account", request.account, directive_text::name);
    set_directive(values, "queue", request.queue, directive_text::name);
    values.set("has_qos", !request.queue.empty() && request.queue_is_qos);
    values.set("has_partition", !request.queue.empty() && !request.queue_is_qos);
    set_directive(values, "constraint", request.constraint, directive_text::expression);
    set_directive(values, "chunk", request.chunk, directive_text::resource);
    set_directive(values, "place", request.place, directive_text::resource);
    set_directive(values, "filesystems", request.filesystems, directive_text::resource);
    set_directive(values, "attributes", request.attributes, directive_text::resource);
    data directives = data::type::list;
    for (auto const& text : request.directives)
        directives.push_back(directive_value("directive", text, directive_text::directive));
    values.set("directives", directives);
}

void set_body(data& values, script_request const& request) {
    if (request.command.empty())
        throw error(errc::usage, "the program is missing; give it after --, as in: muster script … -- python3 train.py");
    for (auto const& line : request.setup)
        if (line.find_first_of(std::string_view("\n\r\0", 3)) != std::string::npos)
            throw parse_error("setup", line, line.find_first_of(std::string_view("\n\r\0", 3)),
                              "the setup line holds a line break; divide it into several", errc::usage);
    values.set("login_shell", request.login_shell);
    values.set("modules", list_of(request.modules));
    values.set("setup", list_of(request.setup));
    data environment = data::type::list;
    for (auto const& [name, value] : request.environment) {
        data row;
        row.set("name", variable_name(name));
        row.set("value", value);
        environment.push_back(row);
    }
    values.set("environment", environment);
    values.set("muster", request.muster);
    values.set("run_options", list_of(request.run_options));
    values.set("command", list_of(request.command));
    values.set("local", request.kind == script_kind::local);
    values.set("batch", request.kind != script_kind::local);
}

}  // namespace

std::string_view to_string(script_kind kind) noexcept {
    switch (kind) {
        case script_kind::slurm: return "slurm";
        case script_kind::pbs: return "pbs";
        case script_kind::cobalt: return "cobalt";
        case script_kind::local: return "local";
    }
    return "unknown";
}

std::string render(script_request const& request, std::string_view template_text, std::string_view origin) {
    data values;
    set_shape(values, request);
    set_directives(values, request);
    set_body(values, request);
    std::string const body = built_in("body");
    values.set("body", data(partial([body] { return body; })));

    mustache text{std::string(template_text)};
    if (!text.is_valid()) throw error(errc::config, fmt::format("{}: not a mustache template: {}", origin, text.error_message()));
    text.set_custom_escape(bash_quote);
    auto script = text.render(values);
    script.erase(script.find_last_not_of('\n') + 1);
    return script + '\n';
}

std::string render(script_request const& request) {
    auto const name = to_string(request.kind);
    return render(request, built_in(name), fmt::format("built-in template {}", name));
}

}  // namespace muster
