// The table of muster's settings. Command-line options, MUSTER_* variables and keys of muster.toml are read by it; help,
// completion and man pages are written from it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The kinds of values; a file and a folder are paths.
enum class setting_kind { flag, integer, text, time, list, file, folder };

/// The groups in which settings are shown, in this order.
enum class setting_group { placement, nodes, engine, ranks, output, time, restarts, checks, job, general };
std::string_view to_string(setting_group group) noexcept;
std::span<setting_group const> setting_groups() noexcept;

/// Says who may set it. The first value is a row's default, with which no file can do harm. The words say what ./muster.toml may do,
/// which may have come with a project of somebody else's.
enum class setting_use {
    command_line,   ///< an option only
    common_option,  ///< the same, among the few that --help shows
    /// Option, variable and key of a file of the user, the site or an administrator, but not of the folder that muster is called in:
    /// for a value that names a program which muster starts, or weakens what protects the run.
    own_files,
    common_own_files,  ///< the same, among the few that --help shows
    /// Option, variable and key of any file; a note says so where ./muster.toml sets it: for a value that can run programs, reach
    /// hosts, or write and charge where the user has not said so.
    told,
    common_told,  ///< the same, among the few that --help shows
    everywhere,   ///< option, variable and key of any file: harmless, whoever sets it
    common        ///< the same, among the few that --help shows
};

/// Says whose a settings file is.
enum class file_owner {
    user,    ///< the user's, an administrator's, or one that the user has named
    folder,  ///< ./muster.toml, or a file that it names: it may have come with a project, and is read without a request
};

/// A fault of a value. If it is at the beginning, the message quotes the value.
struct value_fault {
    std::size_t offset = 0;
    std::string message;
    bool operator==(value_fault const&) const = default;
};

struct setting {
    std::string_view name;      ///< "ranks-per-node": --ranks-per-node, MUSTER_RANKS_PER_NODE, ranks-per-node = …
    char letter = 0;            ///< 'n': -n
    std::string_view aliases;   ///< names in other tools: "-np num-proc"; one with a dash also works with a single dash
    std::string_view argument;  ///< the name of its value, "N"; empty for a flag
    setting_kind kind = setting_kind::text;
    std::string_view choices;   ///< "slot node": the only values; empty: any
    std::string_view commands;  ///< "run plan": those that take it
    setting_group group = setting_group::general;
    setting_use use = setting_use::command_line;
    std::string_view fallback;  ///< the built-in value; empty: no value, or false
    std::string_view help;      ///< one line
    int least = 1;              ///< for an integer
    char separator = 0;         ///< between a list's entries in one text; ' ': words as in a shell; 0: one option, one entry
    std::optional<value_fault> (*check)(std::string const& entry) = nullptr;
    std::string_view part;  ///< that a build may leave out, and with it the setting; empty: of the core

    bool is_common() const noexcept {
        return use == setting_use::common || use == setting_use::common_option || use == setting_use::common_own_files ||
               use == setting_use::common_told;
    }
    /// Returns whether a note says so where ./muster.toml sets it.
    bool is_told() const noexcept { return use == setting_use::told || use == setting_use::common_told; }
    /// Returns whether a variable, and some file, may set it.
    bool is_configurable() const noexcept { return is_for(file_owner::user); }
    bool is_for(file_owner owner) const noexcept {
        bool const any = use == setting_use::everywhere || use == setting_use::common || is_told();
        bool const own = use == setting_use::own_files || use == setting_use::common_own_files;
        return any || (own && owner == file_owner::user);
    }
    /// Returns whether it is a flag that is on unless --no-NAME is given.
    bool is_on_by_default() const noexcept { return kind == setting_kind::flag && fallback == "true"; }
};

/// Returns all settings, in the order of display.
std::span<setting const> settings() noexcept;

/// Returns the words of one of a setting's texts: its aliases (with their dash), choices or commands.
std::vector<std::string_view> words_of(std::string_view text);

/// A checked key of a settings file: one entry, or any number of entries of a list.
struct file_setting {
    std::string name;
    std::vector<std::string> entries;
    std::string where;  ///< "muster.toml:3"
    bool operator==(file_setting const&) const = default;
};

/// Returns whether it is one of the command's options in this build. takes() is wider: `plan` takes all options of `run`, so that one word
/// turns one command into the other; `config` takes what a file may set; `submit` and `script` take, by name only, what a file
/// may set for `run` in the job.
bool is_listed(std::string_view command, setting const& row) noexcept;
bool takes(std::string_view command, setting const& row) noexcept;
/// Returns whether the command takes it by name only, because its letter and other tools' names mean something else there.
bool takes_by_name_only(std::string_view command, setting const& row) noexcept;

/// Returns whether a command writes or submits a job: script, submit, alloc.
bool writes_job(std::string_view command) noexcept;
/// Returns the one that `command` takes by exactly this name, or nullptr.
setting const* find_setting(std::string_view name, std::string_view command) noexcept;
/// Returns the one with this name in files and variables, or nullptr.
setting const* find_configurable(std::string_view name) noexcept;

/// Returns "MUSTER_RANKS_PER_NODE".
std::string variable_of(setting const& row);

/// Returns the entries of a value: the pieces of a list's text, else the text itself. A variable's or file's text for a list
/// without separator is one entry, unless each of its words can be one. Throws parse_error for words that do not split.
std::vector<std::string> entries_of(setting const& row, std::string const& text, std::string_view origin, bool from_option);

/// Returns the fault of one entry of a value; nothing if it is valid.
std::optional<value_fault> fault_of(setting const& row, std::string const& entry);

/// Throws errc::usage for a value that `origin`, an option or a variable, gives; a caret shows a fault that is not at the
/// beginning.
[[noreturn]] void throw_fault(std::string_view origin, std::string const& entry, value_fault const& fault);

}  // namespace muster
