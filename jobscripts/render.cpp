#include "jobscripts/render.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <kainjow/mustache.hpp>

#include "base/text.hpp"
#include "base/throw_error.hpp"
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
    if (value < least) throw_error(errc::usage, "a script for {} {} is not possible; give at least {}", value, what, least);
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
        throw_error(errc::usage, "a walltime of {} s is not possible; give one of at most 366 days, such as 1:30:00",
                    request.walltime.count());
    return format_walltime(request.walltime);
}

void set_shape(data& values, script_request const& request) {
    auto const nodes = request.nodes + request.spare_nodes;
    auto const places = request.ranks_per_node + request.spare_places;
    auto const chunks = request.chunks > 0 ? request.chunks : nodes;
    values.set("chunks", counted("chunks", chunks, 1));
    values.set("nodes", counted("nodes", nodes, 1));
    values.set("ranks_per_node", counted("ranks a node", places, 1));
    values.set("cpus_per_rank", counted("CPUs a rank", request.cpus_per_rank, 0));
    values.set("has_cpus", request.cpus_per_rank > 0);
    auto const ranks = std::int64_t{nodes} * places;
    auto const cpus = std::int64_t{places} * std::max(1, request.cpus_per_rank);
    values.set("ranks", std::to_string(ranks));
    values.set("cpus_per_node", std::to_string(cpus));
    auto const ranks_per_chunk = std::max<std::int64_t>(1, ranks / chunks);
    values.set("ranks_per_chunk", std::to_string(ranks_per_chunk));
    values.set("cpus_per_chunk", std::to_string(ranks_per_chunk * std::max(1, request.cpus_per_rank)));
    values.set("whole_nodes", request.whole_nodes);
    auto const by = request.with_gpus ? request.gpus_by : gpu_request::none;
    values.set("with_gpus", request.with_gpus);
    values.set("gpus_per_node", by == gpu_request::gpus_per_node);
    values.set("gres", by == gpu_request::gres);
    values.set("has_gpus", by != gpu_request::none);
    if (request.kind == script_kind::local) return;
    values.set("walltime", checked_walltime(request));
    values.set("minutes", std::to_string(static_cast<long>(std::ceil(request.walltime.count() / 60))));
    auto const seconds = static_cast<long>(std::ceil(request.walltime.count()));
    values.set("flux_time", seconds % 60 == 0 ? fmt::format("{}m", seconds / 60) : fmt::format("{}s", seconds));
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

std::string_view job_variable(script_kind kind) noexcept {
    switch (kind) {
        case script_kind::slurm: return "$SLURM_JOB_ID";
        case script_kind::pbs: return "${PBS_JOBID%%.*}";
        case script_kind::cobalt: return "$COBALT_JOBID";
        case script_kind::flux:
            return "$(flux job id --to=f58plain \"$(flux getattr jobid)\")";  // with an ASCII f, as muster writes it
        case script_kind::local: break;
    }
    return "$$";
}

/// The list of a directive, as the scheduler takes it: afterok:12:13, or 12:13.
std::string after_text(script_request const& request) {
    std::vector<std::string> ids;
    for (auto const& id : request.after) ids.push_back(directive_value("job to wait for", id, directive_text::job));
    auto const list = join(ids, ":");
    if (request.kind == script_kind::cobalt) return list;
    return fmt::format("after{}:{}", request.after_kind, list);
}

/// PBS takes one range only, of two jobs or more: "1-8", "1-8:2", and a limit of those at a time, "1-8%2".
void check_pbs_array(std::string_view array) {
    auto const range = array.substr(0, array.find_first_of(":%"));
    auto const dash = range.find('-');
    auto const first = parse_integer(range.substr(0, dash));
    auto const last = dash == std::string_view::npos ? std::nullopt : parse_integer(range.substr(dash + 1));
    if (!first || !last || array.find(',') != std::string_view::npos)
        throw_error(errc::usage,
                    "--array {}: PBS takes one range, such as 1-8 or 1-8:2; give one, and submit other numbers as another array",
                    array);
    if (*first >= *last)
        throw_error(errc::usage, "--array {}: an array of PBS has two jobs or more; give a range such as 0-1", array);
}

/// One word, or nothing, as a section that is shown once or not at all.
data list_of_one(std::string const& word) {
    return list_of(word.empty() ? std::vector<std::string>{} : std::vector{word});
}

/// "{lr}, {wd}".
std::string names_text(std::vector<each_parameter> const& each) {
    std::vector<std::string> names;
    for (auto const& one : each) names.push_back(fmt::format("{{{}}}", one.name));
    return join(names, ", ");
}

/// Sets how the script names the jobs of an array, a chain or a dependency to the scheduler, and what it does about them.
void set_sequence(data& values, script_request const& request) {
    bool const batch = request.kind != script_kind::local;
    bool const arrays = request.kind == script_kind::slurm || request.kind == script_kind::pbs;
    auto const array = request.sweep.empty() ? request.array : fmt::format("0-{}", request.sweep.size() - 1);
    if (!array.empty() && !arrays)
        throw_error(errc::usage, "{} has no arrays of jobs; leave out --array and --sweep{}", to_string(request.kind),
                    request.kind == script_kind::flux ? ", and submit a job for each number" : "");
    if (!batch && (!request.after.empty() || request.chain > 0 || request.requeue))
        throw error(errc::usage,
                    "without a scheduler no job waits for another or starts again; leave out --after, --chain and --requeue");
    if (request.requeue && request.kind == script_kind::cobalt)
        throw error(errc::usage, "Cobalt does not start a job again; leave out --requeue");
    if (request.requeue && request.kind == script_kind::flux)
        throw error(errc::usage,
                    "Flux does not start a job again; leave out --requeue, and give --chain N for jobs that follow one another");
    if (request.after_kind != "ok" && request.kind == script_kind::cobalt)
        throw_error(errc::usage, "Cobalt knows no --after {}:ID; give the ID alone", request.after_kind);
    set_directive(values, "array", array, directive_text::array);
    if (!array.empty() && request.kind == script_kind::pbs) check_pbs_array(array);
    values.set("has_index", !array.empty());
    values.set("index_variable", request.kind == script_kind::slurm ? "$SLURM_ARRAY_TASK_ID" : "$PBS_ARRAY_INDEX");
    std::vector<std::string> sweep;
    for (int const ranks : request.sweep) sweep.push_back(counted("ranks", ranks, 1));
    values.set("has_sweep", !sweep.empty());
    values.set("sweep", join(sweep, " "));
    values.set("ranks_word", sweep.empty() ? std::to_string(std::int64_t{request.nodes} * request.ranks_per_node) : "\"$ranks\"");
    bool const renames = !request.task_name.empty() && request.kind == script_kind::slurm;
    values.set("task_name", list_of_one(renames ? request.task_name : std::string()));
    values.set("has_each", !request.each.empty());
    values.set("each_names", names_text(request.each));
    values.set("each_lines", list_of(value_lines(request.each)));
    values.set("has_after", !request.after.empty());
    std::vector<std::string> each;
    if (request.kind == script_kind::flux)
        for (auto const& id : request.after)
            each.push_back(
                fmt::format("after{}:{}", request.after_kind, directive_value("job to wait for", id, directive_text::job)));
    values.set("after_each", list_of(each));
    values.set("after", request.after.empty() ? std::string() : after_text(request));
    values.set("has_chain", request.chain > 0);
    values.set("chain", std::to_string(request.chain));
    values.set("chain_file", fmt::format(".muster-chain/{}", request.job_name));
    bool const may_restart = request.requeue && request.kind == script_kind::slurm;
    values.set("may_restart", may_restart);
    values.set("marks_end", may_restart && request.chain == 0 && !request.once);
    bool const said = std::ranges::find(request.directives, "-r y") != request.directives.end();
    values.set("requeue", request.requeue && !said);
    set_directive(values, "signal", request.kind == script_kind::slurm ? request.signal : std::string(), directive_text::name);
}

/// The words that run a command once on each node.
std::string node_run_text(script_request const& request) {
    auto words = bash_quote(request.muster) + " run --ranks-per-node 1";
    for (auto const& word : request.node_run_options) words += ' ' + bash_quote(word);
    return words + " --";
}

std::string task_word(std::string const& word, script_request const& request) {
    return quote_task_word(word, request.each, !request.array.empty() || !request.sweep.empty());
}

/// `folder` as one word in which %j is the variable of the job's number.
std::string folder_with_job(std::string const& folder, script_request const& request) {
    auto const quote = [&](std::string const& part) { return task_word(part, request); };
    std::string word;
    std::size_t from = 0;
    for (auto at = folder.find("%j"); at != std::string::npos; at = folder.find("%j", from)) {
        if (at > from) word += quote(folder.substr(from, at - from));
        word += "\"$job\"";
        from = at + 2;
    }
    return from < folder.size() || word.empty() ? word + quote(folder.substr(from)) : word;
}

void set_staging(data& values, script_request const& request) {
    values.set("node_run", node_run_text(request));
    data copies = data::type::list;
    for (auto const& [from, to] : request.stage_in) {
        data row;
        row.set("from", from);
        row.set("to", to);
        copies.push_back(row);
    }
    values.set("stage_in", copies);
    values.set("has_stage_in", !request.stage_in.empty());
    auto const& out = request.artifacts;
    values.set("has_artifacts", !out.folder.empty());
    values.set("job_variable", std::string(job_variable(request.kind)));
    values.set("sync_folder", out.node_folder);
    values.set("artifact_folder", folder_with_job(out.folder, request));
    values.set("artifacts_every", out.every);
}

/// The line that shows the container what was staged in, and the folder for results.
void set_binds(data& values, script_request const& request) {
    std::vector<std::string> folders;
    if (!request.container.image.empty()) {
        for (auto const& [from, to] : request.stage_in)
            if (is_to_be_bound(to)) folders.push_back(bash_quote(to));
        if (!request.artifacts.folder.empty() && is_to_be_bound(request.artifacts.node_folder))
            folders.emplace_back("\"$MUSTER_SYNC_DIR\"");
    }
    auto const* const name = request.container.runtime == "singularity" ? "SINGULARITY_BIND" : "APPTAINER_BIND";
    values.set("has_binds", !folders.empty());
    values.set("binds", fmt::format("export {0}=\"${{{0}:+${0},}}\"{1}", name, join(folders, ",")));
}

/// The words before the command that put it into a container.
std::vector<std::string> container_words(container_request const& container) {
    if (container.image.empty()) return {};
    std::vector<std::string> words{container.runtime, "exec"};
    words.insert(words.end(), container.options.begin(), container.options.end());
    words.push_back(container.image);
    return words;
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
    values.set("venv", list_of_one(request.venv.empty() ? "" : request.venv + "/bin/activate"));
    values.set("conda", list_of_one(request.conda));
    values.set("container", list_of(container_words(request.container)));
    values.set("muster", request.muster);
    auto const folder_ends = request.muster.rfind('/');  // PBS passes no PATH on
    values.set("muster_folder", list_of_one(folder_ends == std::string::npos ? "" : request.muster.substr(0, folder_ends)));
    values.set("run_options", list_of(request.run_options));
    values.set("command", list_of(request.command));
    values.set("once", request.once);
    values.set("local", request.kind == script_kind::local);
    values.set("batch", request.kind != script_kind::local);
}

/// A tag of a template: "{{#queue}}" is '#' and "queue".
struct template_tag {
    std::size_t offset = 0;  ///< of the name
    char kind = ' ';         ///< '#', '^', '/', '>', or ' ' for a value
    std::string name;
};

/// Returns the tags without comments, up to one that changes the delimiters.
std::vector<template_tag> tags_of(std::string_view text) {
    std::vector<template_tag> tags;
    for (auto at = text.find("{{"); at != std::string_view::npos; at = text.find("{{", at)) {
        at += 2;
        auto const end = text.find("}}", at);
        if (end == std::string_view::npos) break;
        auto const inside = text.substr(at, end - at);
        auto const first = inside.find_first_not_of(" \t{&");
        if (first == std::string_view::npos) continue;
        char const sign = inside[first];
        if (sign == '=') break;
        if (sign == '!') continue;
        bool const has_kind = std::string_view("#^/>").find(sign) != std::string_view::npos;
        auto const from = std::min(inside.size(), inside.find_first_not_of(" \t", first + (has_kind ? 1 : 0)));
        auto const name = trim(inside.substr(from));
        tags.push_back({at + from, has_kind ? sign : ' ', std::string(name)});
        at = end;
    }
    return tags;
}

/// The names of every template that is built in.
std::vector<std::string> built_in_names() {
    std::vector<std::string> names;
    for (auto const* name : {"slurm", "pbs", "cobalt", "flux", "local", "body"})
        for (auto& tag : tags_of(built_in(name)))
            if (tag.kind != '>' && tag.name != ".") names.push_back(std::move(tag.name));
    return names;
}

/// A name that nothing sets would be left empty without a word.
void refuse_unknown_names(std::string_view text, std::string_view origin, data const& values) {
    auto const names = built_in_names();
    auto const is_known = [&](std::string const& name) {
        return name == "." || values.get(name) != nullptr || std::ranges::find(names, name) != names.end();
    };
    for (auto const& tag : tags_of(text)) {
        if (tag.kind == '>' ? tag.name == "body" : is_known(tag.name)) continue;
        auto const near = tag.kind == '>' ? std::optional<std::string>("body") : nearest(tag.name, names);
        throw parse_error(
            origin, text, tag.offset,
            fmt::format("there is no {} '{}' for templates{}; docs/sites.md lists the names", tag.kind == '>' ? "part" : "name",
                        tag.name, near ? fmt::format(", did you mean '{}'?", *near) : ""),
            errc::config);
    }
}

constexpr int deepest_sections = 32;  ///< the library calls itself once a level, each time with what is left of the text

void refuse_deep_sections(std::string_view text, std::string_view origin) {
    int depth = 0;
    for (auto at = text.find("{{"); at != std::string_view::npos; at = text.find("{{", at + 2)) {
        auto const tag = trim(text.substr(at + 2, 16));
        if (tag.starts_with('#') || tag.starts_with('^')) ++depth;
        if (tag.starts_with('/')) --depth;
        if (depth > deepest_sections)
            throw parse_error(origin, text, at,
                              fmt::format("sections nested deeper than {} levels; write fewer", deepest_sections), errc::config);
    }
}

}  // namespace

std::string render(script_request const& request, std::string_view template_text, std::string_view origin) {
    data values;
    set_shape(values, request);
    set_directives(values, request);
    set_sequence(values, request);
    set_staging(values, request);
    set_binds(values, request);
    set_body(values, request);
    std::string const body = built_in("body");
    values.set("body", data(partial([body] { return body; })));

    refuse_deep_sections(template_text, origin);
    refuse_unknown_names(template_text, origin, values);
    mustache text{std::string(template_text)};
    if (!text.is_valid()) throw_error(errc::config, "{}: not a mustache template: {}", origin, text.error_message());
    text.set_custom_escape([&](std::string const& word) { return task_word(word, request); });
    auto script = text.render(values);
    script.erase(script.find_last_not_of('\n') + 1);
    return script + '\n';
}

std::string render(script_request const& request) {
    auto const name = to_string(request.kind);
    return render(request, built_in(name), fmt::format("built-in template {}", name));
}

}  // namespace muster
