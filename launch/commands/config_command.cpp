#include "base/command/print_note.hpp"
#include "base/process/files.hpp"
#include "base/trust/foreign_json.hpp"
#include "launch/commands/commands.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "base/text.hpp"
#include "base/text_table.hpp"
#include "base/throw_error.hpp"
#include "launch/help/help.hpp"
#include "launch/settings/parts.hpp"
#include "launch/settings/settings_file.hpp"
#include "launch/site/site.hpp"

namespace muster {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

ordered_json json_of(setting const& row, settings_result const& given) {
    switch (row.kind) {
        case setting_kind::flag: return given.flag(row.name);
        case setting_kind::list: return given.list(row.name);
        case setting_kind::integer:
            if (auto const value = given.integer(row.name)) return *value;
            return nullptr;
        case setting_kind::time:
            if (auto const value = given.time(row.name)) return value->count();
            return nullptr;
        case setting_kind::file:
        case setting_kind::folder:
        case setting_kind::text: break;
    }
    auto const value = given.text(row.name);
    return value.empty() ? ordered_json() : ordered_json(value);
}

std::string shown(setting const& row, settings_result const& given) {
    if (row.kind == setting_kind::flag) return given.flag(row.name) ? "true" : "false";
    auto const entries = given.list(row.name);
    if (row.kind == setting_kind::list) return entries.empty() ? "-" : shell_join(entries);
    return entries.empty() ? "-" : entries.front();
}

/// Calls `take` for each setting to show.
template <typename function>
void for_each_shown(settings_result const& given, bool all, function take) {
    for (auto const& row : settings())
        if (row.is_configurable() && has_part(row.part) && (all || given.given(row.name))) take(row, given.get(row.name));
}

int show(std::vector<std::string> const& args, settings_sources const& sources) {
    auto const given = resolve_settings("config", args, sources);
    if (print_help_if_asked("config", given)) return 0;
    if (!given.command.empty())
        throw_error(errc::usage, "muster config show takes no argument '{}'; leave it out", given.command.front());
    bool const all = given.flag("all");
    fmt::print("{}", given.flag("json") ? config_json(given, all) : config_table(given, all));
    print_notes(given);
    if (given.values.empty() && !all) print_note("nothing is set; --all shows the built-in values");
    return 0;
}

/// Returns "yes", or "no, …" with the reason why a settings file is not read.
std::string whether_read(std::string const& name, settings_sources const& sources) {
    try {
        if (name == sources.project_file)
            if (auto const why = sources.distrust(name); !why.empty()) return "no, " + why;
        return sources.read_file(name) ? "yes" : "no, it is not there";
    } catch (error const& e) {
        return fmt::format("no, {}", e.what());
    }
}

int path(std::vector<std::string> const& args, settings_sources const& sources) {
    auto const given = resolve_options("config", args, sources.variables);
    if (print_help_if_asked("config", given)) return 0;
    if (!given.command.empty())
        throw_error(errc::usage, "muster config path takes no argument '{}'; leave it out", given.command.front());
    text_table table({"file", "read"});
    auto files = ordered_json::array();
    std::vector<std::string> names{sources.project_file, sources.user_file};
    names.insert(names.end(), sources.system_files.begin(), sources.system_files.end());
    for (auto const& name : names) {
        if (name.empty()) continue;
        std::error_code fault;
        auto const whole = fs::absolute(name, fault).string();
        auto const read = whether_read(name, sources);
        table.add({whole, read});
        files.push_back({{"path", whole}, {"exists", path_exists(name)}, {"read", read == "yes"}});
    }
    if (given.flag("json"))
        fmt::print("{}\n", json_text(ordered_json{{"schema", "muster.config-path/1"}, {"files", files}}, 2));
    else
        fmt::print("{}", table.text());
    return 0;
}

/// Throws for a site that does not exist, or whose file has a fault. Skips a path in a file elsewhere: it is relative to the
/// folder in which muster will be called.
void check_site(file_setting const& row, std::string const& file, settings_sources const& sources) try {
    auto const& site = row.entries.front();
    if (fs::path(file).has_parent_path() && fs::path(site).is_relative() && fs::path(site).has_parent_path()) return;
    sources.load_site(site);
} catch (error const& e) {
    if (e.code() != errc::usage) throw;
    throw_error(errc::usage, "{}: {}", row.where, e.what());
}

/// Throws where the setting needs a part that this build lacks, as a run would.
void check_part(file_setting const& row) {
    auto const* const known = find_setting(row.name, "config");
    if (known && !has_part(known->part) && row.entries != std::vector<std::string>{"false"})
        throw error(errc::unavailable, absent_part(fmt::format("{}: {}", row.where, row.name), known->part));
}

int check(std::vector<std::string> const& args, settings_sources const& sources) {
    auto const given = resolve_options("config", options_first("config", args), sources.variables);
    if (print_help_if_asked("config", given)) return 0;
    if (given.command.size() != 1) throw error(errc::usage, "muster config check takes one settings file; give its name");
    auto const& file = given.command.front();
    auto const text = sources.read_file(file);
    if (!text) throw_error(errc::usage, "no settings file {}; check the name", file);
    if (looks_like_site(*text)) throw_error(errc::usage, "{} is a site file; muster site check {} reads it", file, file);
    auto const owner = fs::path(file).lexically_normal() == sources.project_file ? file_owner::folder : file_owner::user;
    auto const job = parse_job_file(*text, file, false, owner);
    auto const own = parse_settings(*text, file, owner);
    for (auto const& rows : {own, job ? job->settings : std::vector<file_setting>{}})
        for (auto const& row : rows) {
            check_part(row);
            if (row.name == "site") check_site(row, file, sources);
        }
    auto const found = own.size() + (job ? job->settings.size() : 0);
    if (given.flag("json"))
        fmt::print("{}\n", json_text(ordered_json{{"schema", "muster.config-check/1"}, {"file", file}, {"settings", found}}, 2));
    else
        fmt::print("{}: {}, no error\n", file, counted(static_cast<std::int64_t>(found), "setting"));
    return 0;
}

}  // namespace

std::string config_table(settings_result const& given, bool all) {
    text_table table({"setting", "value", "from", "where"});
    for_each_shown(given, all, [&](setting const& row, setting_value const& value) {
        table.add({std::string(row.name), shown(row, given), std::string(to_string(value.from)),
                   value.where.empty() ? "-" : value.where});
    });
    return table.text();
}

std::string config_json(settings_result const& given, bool all) {
    auto rows = ordered_json::array();
    for_each_shown(given, all, [&](setting const& row, setting_value const& value) {
        rows.push_back({{"name", row.name},
                        {"value", json_of(row, given)},
                        {"from", to_string(value.from)},
                        {"where", value.where},
                        {"variable", variable_of(row)}});
    });
    return json_text(ordered_json{{"schema", "muster.config/1"}, {"settings", rows}}, 2) + "\n";
}

int config_command(std::vector<std::string> const& args, environment const& variables) {
    auto const sources = real_settings(variables);
    auto const verb = args.empty() ? std::string() : args.front();
    std::vector<std::string> const rest(args.begin() + (args.empty() ? 0 : 1), args.end());
    if (verb == "show") return show(rest, sources);
    if (verb == "path") return path(rest, sources);
    if (verb == "check") return check(rest, sources);
    if (verb.starts_with('-') && print_help_if_asked("config", resolve_options("config", args, sources.variables))) return 0;
    if (verb.empty()) throw error(errc::usage, "muster config: the command is missing; give show, path or check");
    throw_error(errc::usage, "muster config has no command '{}'; give show, path or check", without_controls(verb));
}

}  // namespace muster
