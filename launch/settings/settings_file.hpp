// Reads a settings file, muster.toml, and a job file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/settings/setting.hpp"
#include "launch/settings/toml_reader.hpp"

namespace muster {

/// Returns the settings in `text`, in order of name. Pure. Throws parse_error (errc::config) with `origin`, line and caret:
/// invalid TOML, an unknown key (with the nearest known one), a key for the command line only, or one that the `owner` of the
/// file may not set, a wrong type or value. Skips a table [job]: see below.
std::vector<file_setting> parse_settings(std::string_view text, std::string_view origin, file_owner owner = file_owner::user);

// Reads the settings in one table of a TOML document, as in a site file.

/// Does the same for one table; `path` names it in errors ("job" for a job file's), and `meaningless`, if not empty, is a key
/// that it must not contain.
std::vector<file_setting> read_settings(toml_document const& document, toml::table const& table, std::string const& path,
                                        std::string_view meaningless = {}, file_owner owner = file_owner::user);

// A job file says in its table [job] what to submit and with which settings.

struct job_file {
    std::vector<file_setting> settings;  ///< those of the table [job], then those above it that [job] does not set
    std::vector<std::string> command;    ///< the program and its arguments; empty: the command line names them
    bool operator==(job_file const&) const = default;
};

/// Returns the job in `text`: a settings file with a table [job]; nothing if that table is missing and not `required`. Its keys
/// are those of a settings file, `command` (a list of words, or one text, which is split as by a shell) and `env` also as a
/// table. With `required` the settings above the table apply to the job, too. Pure. Throws parse_error (errc::config) with
/// `origin`, line and caret, as parse_settings does.
std::optional<job_file> parse_job_file(std::string_view text, std::string_view origin, bool required,
                                       file_owner owner = file_owner::user);

}  // namespace muster
