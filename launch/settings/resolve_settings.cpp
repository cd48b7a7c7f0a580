#include "launch/settings/resolve_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/command/given_options.hpp"
#include "base/command/print_note.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/settings/foreign_options.hpp"
#include "launch/settings/parts.hpp"
#include "launch/settings/settings_file.hpp"

namespace muster {

namespace {

/// Returns the options of the command: a flag has a second one that turns it off.
std::vector<option_shape> shapes_of(std::string_view command) {
    std::vector<option_shape> shapes;
    for (auto const& row : settings()) {
        if (!takes(command, row)) continue;
        bool const is_flag = row.kind == setting_kind::flag;
        shapes.push_back({std::string(row.name), takes_by_name_only(command, row) ? '\0' : row.letter, !is_flag});
        if (is_flag) shapes.push_back({fmt::format("no-{}", row.name), 0, false});
    }
    return shapes;
}

/// Returns the commands that take an option of that name.
std::string takers_of(std::string const& name) {
    for (auto const& row : settings())
        if (row.name == name) {
            std::vector<std::string> takers;
            for (auto const command : words_of(row.commands)) {
                if (command == "script") takers.emplace_back("muster submit");  // takes the same
                takers.push_back(fmt::format("muster {}", command));
            }
            return join(takers, ", ");
        }
    return {};
}

[[noreturn]] void throw_unknown(std::string_view command, std::string const& word) {
    std::vector<std::string> names;  // among equally near names, the command's own come first
    for (bool const by_name_only : {false, true})
        for (auto const& row : settings())
            if (takes(command, row) && takes_by_name_only(command, row) == by_name_only) {
                names.push_back(fmt::format("--{}", row.name));
                if (row.kind == setting_kind::flag) names.push_back(fmt::format("--no-{}", row.name));
            }
    auto const name = word.substr(0, word.find('='));
    if (command == "script" && (name == "--file" || name == "-F" || name == "--dry-run"))
        throw_error(errc::usage, "muster script takes no {}; muster submit --file FILE --dry-run prints the script of a job file",
                    name);
    auto const takers = name.starts_with("--") ? takers_of(name.substr(2)) : std::string();
    if (!takers.empty()) throw_error(errc::usage, "muster {} takes no {}; use it with {}", command, name, takers);
    auto const near = nearest(name, names);
    throw_error(errc::usage, "unknown option '{}'{}; --help lists all", name,
                near ? fmt::format(", did you mean {}?", *near) : "");
}

void add(command_line& line, std::string_view command, std::string const& name, std::string const& value,
         std::string const& spelled) {
    auto const& row = *find_setting(name, command);
    auto& known = line.given[name];
    if (row.kind == setting_kind::flag) known.entries.clear();  // the last one counts
    if (row.kind != setting_kind::list && !known.entries.empty()) {
        if (known.entries.front() == value) return;
        throw_error(errc::usage, "--{} is given twice: {} and {}; give one", name, known.entries.front(), value);
    }
    known.spelled = spelled;
    for (auto& entry : entries_of(row, value, spelled, true)) {
        if (auto const fault = fault_of(row, entry)) throw_fault(spelled, entry, *fault);
        known.entries.push_back(std::move(entry));
    }
}

}  // namespace

command_line parse_command_line(std::string_view command, std::vector<std::string> const& args) {
    auto rewritten = rewrite_foreign_options(command, args);
    command_line line;
    line.command = std::move(rewritten.command);
    line.notes = std::move(rewritten.notes);
    auto const read = read_option_words(shapes_of(command), rewritten.options);
    if (read.unknown) throw_unknown(command, *read.unknown);
    for (auto [name, value] : read.options) {
        bool const negated = find_setting(name, command) == nullptr;  // it can only be a flag's no-NAME
        if (negated) name = name.substr(3);
        auto const& row = *find_setting(name, command);
        auto const found = rewritten.spelled.find(name);
        auto const spelled = found == rewritten.spelled.end() ? fmt::format("--{}", name) : found->second;
        if (row.kind == setting_kind::flag) {
            add(line, command, name, negated ? "false" : "true", spelled);
            continue;
        }
        for (auto const& [meant, meant_value] : rewrite_foreign_value(row, value))
            add(line, command, meant, meant_value, spelled);
    }
    return line;
}

namespace {

/// Lists variables that begin with MUSTER_ and are no settings: muster sets them for ranks and itself.
constexpr std::array known_variables{"MUSTER_NSPACE",       "MUSTER_HOST",         "MUSTER_RANK",        "MUSTER_WORLD_SIZE",
                                     "MUSTER_LOCAL_RANK",   "MUSTER_LOCAL_SIZE",   "MUSTER_NODE_RANK",   "MUSTER_NODE_COUNT",
                                     "MUSTER_CPUS",         "MUSTER_LOG",          "MUSTER_SITE_PATH",   "MUSTER_LAUNCHER",
                                     "MUSTER_TOKEN",        "MUSTER_OWN_DEFAULTS", "MUSTER_ARRAY_INDEX", "MUSTER_CHAIN_LINK",
                                     "MUSTER_LIFE",         "MUSTER_CHAIN_LENGTH", "MUSTER_CHAIN_START", "MUSTER_SYNC_DIR",
                                     "MUSTER_ARTIFACTS_DIR"};

bool is_known_variable(std::string const& name) {
    return name.starts_with("MUSTER_GPU_") || std::ranges::find(known_variables, name) != known_variables.end();
}

std::optional<std::string> note_on(std::string const& name) {
    if (is_known_variable(name)) return std::nullopt;
    std::vector<std::string> names;
    for (auto const& row : settings())
        if (row.is_configurable()) names.push_back(variable_of(row));
    auto const near = nearest(name.substr(7), [&] {
        auto bare = names;
        for (auto& n : bare) n.erase(0, 7);
        return bare;
    }());
    if (!near) return std::nullopt;
    return fmt::format("{} is no setting of muster; did you mean MUSTER_{}?", name, *near);
}

void put(settings_result& result, std::string_view name, setting_value value) {
    auto const [at, is_new] = result.values.try_emplace(std::string(name), value);
    if (!is_new && at->second.from < value.from) at->second = std::move(value);
}

void add_variables(settings_result& result, environment const& variables) {
    for (auto const& [name, text] : variables) {
        if (!name.starts_with("MUSTER_") || text.empty()) continue;
        auto const row =
            std::ranges::find_if(settings(), [&](auto const& r) { return r.is_configurable() && variable_of(r) == name; });
        if (row == settings().end()) {
            if (auto note = note_on(name)) result.notes.push_back(*note);
            continue;
        }
        setting_value value{{}, setting_layer::variable, name};
        for (auto const& entry : entries_of(*row, text, name, false)) {
            if (auto const fault = fault_of(*row, entry)) throw_fault(name, entry, *fault);
            value.entries.push_back(entry);
        }
        put(result, row->name, std::move(value));
    }
}

void add_file(settings_result& result, settings_sources const& sources, std::string const& path, setting_layer layer) {
    if (path.empty() || !sources.read_file) return;
    auto const text = sources.read_file(path);
    if (!text) return;
    auto const owner = layer == setting_layer::project_file ? file_owner::folder : file_owner::user;
    for (auto& read : parse_settings(*text, path, owner))
        put(result, read.name, {std::move(read.entries), layer, std::move(read.where)});
}

/// ./muster.toml decides what runs for whoever is in its folder, so it must belong to the user, or to root.
bool is_trusted(settings_result& result, settings_sources const& sources, std::string const& path) {
    auto const why = path.empty() || !sources.distrust ? std::string() : sources.distrust(path);
    if (why.empty()) return true;
    result.file_notes.push_back(fmt::format("./{} is not read: {}; copy it to a file of your own", path, why));
    return false;
}

/// Lists settings that name a file; another user may have put such a file next to ./muster.toml.
constexpr std::array naming_files{"site", "template", "hostfile"};

bool is_relative_file(std::string const& name, std::string const& value) {
    if (value.starts_with('/')) return false;
    return name != "site" || value.find('/') != std::string::npos || value.ends_with(".toml");
}

bool is_from(settings_result const& result, std::string const& name, setting_layer layer) {
    auto const found = result.values.find(name);
    return found != result.values.end() && found->second.from == layer;
}

/// Adds a note that names the settings from a file of the folder that it may not set untold.
void tell_settings(settings_result& result, setting_layer from, std::string const& where) {
    std::vector<std::string> told;
    for (auto const& row : settings())
        if (row.is_told() && is_from(result, std::string(row.name), from)) told.emplace_back(row.name);
    if (!told.empty()) result.file_notes.push_back(fmt::format("settings from {}: {}", where, join(told, ", ")));
}

/// Reports important settings of ./muster.toml, and refuses other users' files that it or the job file names.
void check_project_file(settings_result& result, settings_sources const& sources) {
    tell_settings(result, setting_layer::project_file, "./" + sources.project_file);
    for (std::string const name : naming_files) {
        if (!sources.distrust_named || !is_relative_file(name, result.text(name))) continue;
        if (!is_from(result, name, setting_layer::project_file) && !is_from(result, name, setting_layer::job_file)) continue;
        if (auto const why = sources.distrust_named(result.text(name)); !why.empty())
            throw_error(errc::config, "{}: {} names {}, which is not read: {}; name a file of your own", result.get(name).where,
                        name, result.text(name), why);
    }
}

/// A job file that --file names must also belong to the user: it is refused, since without it the job would be another one.
std::optional<job_file> read_job_file(settings_result& result, settings_sources const& sources, bool trusts_project) {
    if (!sources.read_file) return std::nullopt;
    auto const named = result.text("file");
    if (named.empty() && !trusts_project) return std::nullopt;
    auto const& path = named.empty() ? sources.project_file : named;
    if (path.empty()) return std::nullopt;
    if (auto const why = named.empty() || !sources.distrust ? std::string() : sources.distrust(named); !why.empty())
        throw_error(errc::config, "--file {}: not read: {}; copy it to a file of your own", named, why);
    auto const text = sources.read_file(path);
    if (!text && !named.empty()) throw_error(errc::usage, "--file {}: there is no such file; check the name", named);
    if (!text) return std::nullopt;
    auto job = parse_job_file(*text, path, !named.empty(), named.empty() ? file_owner::folder : file_owner::user);
    if (job) result.job_file = path;
    return job;
}

/// Returns the keys of the job file, in its order.
std::vector<std::string> add_job(settings_result& result, settings_sources const& sources, bool trusts_project) {
    auto job = read_job_file(result, sources, trusts_project);
    if (!job) return {};
    std::vector<std::string> keys;
    for (auto& read : job->settings) {
        put(result, read.name, {std::move(read.entries), setting_layer::job_file, std::move(read.where)});
        keys.push_back(read.name);
    }
    if (result.command.empty() && !job->command.empty()) {
        result.command = std::move(job->command);
        result.command_from_file = true;
    }
    return keys;
}

/// Notes all that applies from a job file: it may be a copy of another user's.
void note_job(settings_result& result, std::vector<std::string> keys, std::string_view command) {
    std::erase_if(keys, [&](auto const& key) { return !is_from(result, key, setting_layer::job_file); });
    if (result.command_from_file && command != "alloc") keys.emplace_back("command");  // alloc runs its own program only
    if (!keys.empty()) result.file_notes.push_back(fmt::format("job from {}: {}", result.job_file, join(keys, ", ")));
}

/// Chooses the user's site if the user has described exactly one.
void choose_own_site(settings_result& result, settings_sources const& sources) {
    if (!sources.own_sites || result.given("site")) return;
    auto const names = sources.own_sites();
    if (names.size() > 1)
        throw_error(errc::usage, "--site is missing; you have site files of {}: give one of them", join(names, ", "));
    if (names.empty()) return;
    put(result, "site", {names, setting_layer::user_file, "the only site file of your own"});
    result.notes.push_back(fmt::format("--site {}: the only site file that did not come with muster", names.front()));
}

/// A job has GPUs, with a rank for each, or ranks without GPUs: the stronger source counts. Ranks that are set for runs in
/// general (by a variable, a settings file) do not count.
void choose_gpus_or_ranks(settings_result& result) {
    if (!result.given("gpus") || !result.given("ranks")) return;
    auto const gpus = result.get("gpus"), ranks = result.get("ranks");
    bool const of_job = ranks.from == setting_layer::option || ranks.from == setting_layer::job_file;
    if (!of_job || gpus.from == ranks.from) return;
    bool const gpus_hold = gpus.from > ranks.from;
    result.notes.push_back(gpus_hold ? fmt::format("gpus ({}) are asked for, not ranks ({})", gpus.where, ranks.where)
                                     : fmt::format("ranks ({}) are asked for, not gpus ({})", ranks.where, gpus.where));
    if (gpus_hold) {
        result.values.erase("ranks");
        return;
    }
    for (auto const* name : {"gpus", "gpus-per-node", "cpus-per-gpu"})
        if (auto const found = result.values.find(name); found != result.values.end() && found->second.from < ranks.from)
            result.values.erase(found);
}

/// Returns whether ./muster.toml, or the job in it, names a site file by a relative path; the file may have come with it.
bool names_site_of_folder(settings_result const& result) {
    bool const of_folder = is_from(result, "site", setting_layer::project_file) ||
                           (is_from(result, "site", setting_layer::job_file) && !result.given("file"));
    return of_folder && is_relative_file("site", result.text("site"));
}

void add_site(settings_result& result, settings_sources const& sources) try {
    if (!sources.load_site || !result.given("site")) return;
    bool const of_folder = names_site_of_folder(result);
    for (auto& read : sources.load_site(result.text("site")).settings) {
        if (of_folder && !find_configurable(read.name)->is_for(file_owner::folder))
            throw_error(errc::config,
                        "{}: a site file that {} names cannot set '{}': both may have come from somebody else; name the site "
                        "with --site",
                        read.where, result.get("site").where, read.name);
        put(result, read.name, {std::move(read.entries), setting_layer::site, std::move(read.where)});
    }
    if (of_folder) tell_settings(result, setting_layer::site, result.text("site"));
} catch (error const& e) {
    auto const site = result.get("site");
    // A fault in a site file has its place already; for a name of no site, the user has to find the file or variable.
    if (e.code() != errc::usage || site.from == setting_layer::option) throw;
    throw_error(errc::usage, "{}: {}", site.where, e.what());
}

/// A value that an administrator sets for all is a default: the user's exported variable overrides it, and is written out, since
/// a job may not get this process' variables (PBS). The number of threads that PBS sets in each job is not the user's.
void keep_exported(settings_result& result, environment const& variables) {
    auto const found = result.values.find("env");
    if (found == result.values.end() || found->second.from > setting_layer::system_file) return;
    // This is the rule of is_threads_of_pbs() in launch/ranks.
    bool const of_pbs = variables.has("PBS_JOBID") && variables.get("OMP_NUM_THREADS") == variables.get("NCPUS");
    for (auto& entry : found->second.entries) {
        auto const equals = entry.find('=');
        auto const name = entry.substr(0, equals);
        if (equals == std::string::npos || (name == "OMP_NUM_THREADS" && of_pbs)) continue;
        if (auto const exported = variables.get(name)) entry = fmt::format("{}={}", name, *exported);
    }
}

/// Refuses what only a part can do that was left out, where the command would do it. `config` shows it, and who has set it.
void refuse_absent(std::string_view command, settings_result const& result) {
    if (command == "config") return;
    for (auto const& row : settings()) {
        if (!takes(command, row)) continue;
        auto const given = result.values.find(row.name);
        if (has_part(row.part) || given == result.values.end()) continue;
        if (row.kind == setting_kind::flag && !result.flag(row.name)) continue;
        bool const in_file = given->second.from < setting_layer::variable;
        throw error(errc::unavailable,
                    absent_part(in_file ? fmt::format("{}: {}", given->second.where, row.name) : given->second.where, row.part));
    }
}

}  // namespace

std::string_view to_string(setting_layer layer) noexcept {
    switch (layer) {
        case setting_layer::built_in: return "built in";
        case setting_layer::site: return "site";
        case setting_layer::system_file: return "site-wide file";
        case setting_layer::user_file: return "user's file";
        case setting_layer::project_file: return "./muster.toml";
        case setting_layer::job_file: return "job file";
        case setting_layer::variable: return "environment";
        case setting_layer::option: return "command line";
    }
    return "?";
}

setting_value settings_result::get(std::string_view name) const {
    if (auto const found = values.find(name); found != values.end()) return found->second;
    for (auto const& row : settings())
        if (row.name == name) return row.fallback.empty() ? setting_value{} : setting_value{{std::string(row.fallback)}, {}, {}};
    expect(false, fmt::format("a setting called {}", name));
    return {};
}

bool settings_result::flag(std::string_view name) const {
    auto const value = text(name);
    return value == "true" || value == "yes" || value == "on" || value == "1";
}

std::optional<int> settings_result::integer(std::string_view name) const {
    auto const value = parse_integer(text(name));
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

std::string settings_result::text(std::string_view name) const {
    auto const value = get(name);
    return value.entries.empty() ? std::string() : value.entries.front();
}

std::optional<duration> settings_result::time(std::string_view name) const {
    auto const value = get(name);
    if (value.entries.empty()) return std::nullopt;
    return parse_duration(value.entries.front(), name);
}

std::vector<std::string> settings_result::list(std::string_view name) const {
    return get(name).entries;
}

std::vector<std::string> options_first(std::string_view command, std::vector<std::string> const& args) {
    std::vector<std::string> options, words;
    auto const takes_value = [&](std::string_view word) {
        return std::ranges::any_of(settings(), [&](setting const& row) {
            bool const is_meant = word.starts_with("--") ? word.substr(2) == row.name : word.size() == 2 && word[1] == row.letter;
            return is_meant && row.kind != setting_kind::flag && takes(command, row);
        });
    };
    for (std::size_t i = 0; i < args.size(); ++i) {
        if (args[i] == "--") {
            words.insert(words.end(), args.begin() + static_cast<std::ptrdiff_t>(i) + 1, args.end());
            break;
        }
        bool const is_option = args[i].size() > 1 && args[i].front() == '-';
        (is_option ? options : words).push_back(args[i]);
        if (is_option && takes_value(args[i]) && i + 1 < args.size()) options.push_back(args[++i]);
    }
    if (!words.empty()) options.emplace_back("--");
    options.insert(options.end(), words.begin(), words.end());
    return options;
}

settings_result resolve_settings(std::string_view command, std::vector<std::string> const& args,
                                 settings_sources const& sources) {
    settings_result result;
    auto line = parse_command_line(command, args);
    result.command = std::move(line.command);
    result.notes = std::move(line.notes);
    for (auto& [name, words] : line.given) put(result, name, {std::move(words.entries), setting_layer::option, words.spelled});
    result.help_columns = help_width(sources.variables);
    if (result.flag("help") || result.flag("help-all")) return result;  // help is printed whatever the files say
    result.file_notes.insert(result.file_notes.end(), sources.notes.begin(), sources.notes.end());
    add_variables(result, sources.variables);
    bool const trusts_project = is_trusted(result, sources, sources.project_file);
    auto const of_job =
        find_setting("file", command) != nullptr ? add_job(result, sources, trusts_project) : std::vector<std::string>();
    if (trusts_project) add_file(result, sources, sources.project_file, setting_layer::project_file);
    add_file(result, sources, sources.user_file, setting_layer::user_file);
    for (auto const& path : sources.system_files) add_file(result, sources, path, setting_layer::system_file);
    check_project_file(result, sources);
    if (writes_job(command) || command == "init") choose_own_site(result, sources);
    add_site(result, sources);
    keep_exported(result, sources.variables);
    if (writes_job(command)) choose_gpus_or_ranks(result);
    refuse_absent(command, result);
    note_job(result, of_job, command);
    return result;
}

settings_result resolve_options(std::string_view command, std::vector<std::string> const& args, environment const& variables) {
    auto given = resolve_settings(command, args, {});
    given.help_columns = help_width(variables);
    return given;
}

void print_notes(settings_result const& given) {
    bool const quiet = given.flag("quiet"), asked = quiet && given.get("quiet").from >= setting_layer::variable;
    if (!quiet)
        for (auto const& note : given.notes) print_note(note);
    if (!asked)
        for (auto const& note : given.file_notes) print_note(note);
}

}  // namespace muster
