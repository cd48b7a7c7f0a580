// The value of every setting and its source: command line, environment, a job file, ./muster.toml, the user's file, site-wide
// files, the site, built in.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/command/help_page.hpp"
#include "base/environment.hpp"
#include "base/units.hpp"
#include "launch/settings/setting.hpp"

namespace muster {

/// Lists the layers in order of precedence, the weakest first.
enum class setting_layer { built_in, site, system_file, user_file, project_file, job_file, variable, option };
std::string_view to_string(setting_layer layer) noexcept;

struct setting_value {
    std::vector<std::string> entries;
    setting_layer from = setting_layer::built_in;
    std::string where;  ///< "--np", "MUSTER_RANKS", "/home/u/.config/muster/muster.toml:3"; empty: built in
    bool operator==(setting_value const&) const = default;
};

/// The settings of a site.
struct site_settings {
    std::string origin;
    std::vector<file_setting> settings;
};

/// Says where settings are looked for in addition to the command line; plain functions, so that tests need no files.
struct settings_sources {
    environment variables;
    std::string project_file;                    ///< "muster.toml"; empty: no such file is read
    std::string user_file;                       ///< empty: no such file is read
    std::vector<std::string> system_files = {};  ///< those of the machine and the installation, the strongest first
    std::function<std::optional<std::string>(std::string const& path)> read_file;  ///< nothing: there is no such file
    std::function<std::string(std::string const& path)>
        distrust;  ///< why another user may have written a file; "": nobody else can have
    std::function<std::string(std::string const& path)>
        distrust_named;  ///< the same for a file that is read later; a missing one is not trusted
    std::function<site_settings(std::string const& name)> load_site;  ///< null: sites are not loaded
    std::vector<std::string> notes = {};                              ///< about files that cannot be looked for
    std::function<std::vector<std::string>()>
        own_sites;  ///< sites with a scheduler that did not come with this program; null: not looked for
};

/// Holds checked values; a setting is found by its name in the table.
class settings_result {
  public:
    std::vector<std::string> command;     ///< the program and its arguments, or the command's own arguments
    bool command_from_file = false;       ///< whether `command` is the job file's
    std::string job_file;                 ///< the job file that was read; or empty
    std::vector<std::string> notes;       ///< for standard error
    std::vector<std::string> file_notes;  ///< for standard error, too, about files that were read or not: no file can hide them
    std::size_t help_columns = usual_help_width;               ///< how wide help is printed
    std::map<std::string, setting_value, std::less<>> values;  ///< what anybody has set

    /// Returns the value, or the built-in one if nobody has set it.
    setting_value get(std::string_view name) const;
    bool given(std::string_view name) const { return values.contains(name); }
    bool flag(std::string_view name) const;
    std::optional<int> integer(std::string_view name) const;
    std::string text(std::string_view name) const;  ///< "" without a value
    std::optional<duration> time(std::string_view name) const;
    std::vector<std::string> list(std::string_view name) const;
};

/// Returns `args` with the options before the other words, for commands that start no program: "12 --rank 3" as "--rank 3 12".
/// Pure.
std::vector<std::string> options_first(std::string_view command, std::vector<std::string> const& args);

/// Reads the options of `command` (the name of a command: "run") and all weaker sources. Throws errc::usage and errc::config for
/// what the user can change, each with its place. Commands with the option --file read a job file, too, and take the program from
/// it if the command line has none.
settings_result resolve_settings(std::string_view command, std::vector<std::string> const& args, settings_sources const& sources);

/// Reads only the options of `command`, without variables and files, of which it takes the width of help.
settings_result resolve_options(std::string_view command, std::vector<std::string> const& args, environment const& variables);

/// Prints the notes on standard error, unless --quiet is set. A file's --quiet hides no notes about files.
void print_notes(settings_result const& given);

// Reads a command line by the table of settings.

/// The words that a command line gives to one setting.
struct given_words {
    std::vector<std::string> entries;
    std::string spelled;  ///< the user's spelling of the option: "-np"
    bool operator==(given_words const&) const = default;
};

struct command_line {
    std::map<std::string, given_words, std::less<>> given;  ///< by name of the setting
    std::vector<std::string> command;                       ///< the program and its arguments, untouched
    std::vector<std::string> notes;                         ///< about other tools' options that change nothing
    bool operator==(command_line const&) const = default;
};

/// Reads the options of `command`. They end at the first word that is not an option, or at `--`. Throws errc::usage: an unknown
/// option (with the nearest known one), a missing or wrong value (parse_error), an option given twice, an option of another tool
/// for which muster works differently.
command_line parse_command_line(std::string_view command, std::vector<std::string> const& args);

}  // namespace muster
