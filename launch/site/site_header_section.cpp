// Reads what a site file says of directives and queues.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/site/site_sections.hpp"

namespace muster {

namespace {

constexpr int most_nodes = 1'000'000;
constexpr int most_cpus_a_gpu = 65536;
constexpr int most_gpus_a_job = 1'000'000;

}  // namespace

/// The optional text of `key`, fit for a directive.
std::string directive_of(toml_reader const& in, std::string_view key, directive_text kind) {
    auto const value = in.text(key);
    if (!value) return {};
    if (auto const fault = find_fault(*value, kind))
        in.refuse(key, fmt::format("'{}', character {}: {}", key, fault->offset + 1, fault->why));
    return *value;
}

namespace {

/// Refuses keys of `header` that belong to another scheduler, since they would be without effect.
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

}  // namespace

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

namespace {

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

/// The table's own 'name', unique among `before`.
template <typename T>
std::string read_name(toml_reader const& in, std::vector<T> const& before) {
    in.required_text("name");
    auto name = directive_of(in, "name", directive_text::name);
    if (std::any_of(before.begin(), before.end(), [&](T const& other) { return other.name == name; }))
        in.refuse("name", fmt::format("a second one named '{}'", name));
    return name;
}

/// What a queue counts GPUs by: numbers that it takes, and whether PBS' select means them.
void read_gpu_counts(toml_reader const& in, site_queue& queue, script_kind scheduler) {
    constexpr std::array<std::string_view, 2> units{"nodes", "gpus"};
    queue.select_gpus = in.choice("select", units) == "gpus";
    if (in.has("select") && scheduler != script_kind::pbs)
        in.refuse_key("select", fmt::format("'select' is for pbs, and this site's scheduler is {}", to_string(scheduler)));
    queue.gpu_counts = in.integers("gpu_counts", 1, most_gpus_a_job);
}

}  // namespace

site_queue read_site_queue(toml_document const& document, toml::table const& table, std::vector<site_queue> const& before,
                           script_kind scheduler) {
    constexpr std::array<std::string_view, 9> known{"name",         "note",  "min_nodes", "max_nodes", "min_walltime",
                                                    "max_walltime", "route", "select",    "gpu_counts"};
    constexpr std::array<std::string_view, 5> known_of_route{"name", "min_nodes", "max_nodes", "min_walltime", "max_walltime"};
    toml_reader const in(document, table, "queue", known);
    site_queue queue;
    queue.name = read_name(in, before);
    queue.note = in.text("note").value_or("");
    queue.limits = read_limits(in);
    read_gpu_counts(in, queue, scheduler);
    for (auto const* route : in.tables("route")) {
        toml_reader const route_in(document, *route, fmt::format("route of queue '{}'", queue.name), known_of_route);
        auto name = read_name(route_in, queue.routes);
        queue.routes.push_back({std::move(name), read_limits(route_in)});
    }
    return queue;
}

}  // namespace muster
