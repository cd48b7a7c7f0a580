// Reads a settings file, muster.toml, and a job file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/settings/setting.hpp"
#include "launch/settings/toml_reader.hpp"

namespace muster {

/// The settings in `text`, in order of name. Pure. Throws parse_error (errc::config) with `origin`, line and caret: no TOML, an
/// unknown key (with the nearest known one), a key that only the command line has, or that the `owner` of the file may not set, a wrong type or value.
/// A table [job] is passed over: see below.
std::vector<file_setting> parse_settings(std::string_view text, std::string_view origin, file_owner owner = file_owner::user);

// Reads the settings in one table of a TOML document, as in a site file.

/// As parse_settings; `path` names the table in errors ("job": that of a job file), and `meaningless`, if not empty, is a key that cannot stand in it.
std::vector<file_setting> read_settings(toml_document const& document, toml::table const& table, std::string const& path,
                                        std::string_view meaningless = {}, file_owner owner = file_owner::user);

// A job file: says in the table [job] what to submit and with which settings.

struct job_file {
    std::vector<file_setting> settings;  ///< of the table [job], then those above it that [job] does not set
    std::vector<std::string> command;    ///< the program and its arguments; empty: the command line names them
    bool operator==(job_file const&) const = default;
};

/// The job in `text`: a settings file with a table [job]; nothing where that table is not `required` and not there. Its keys are
/// those of a settings file, `command` (a list of words, or one text that is divided as by a shell) and `env` also as a table.
/// With `required` the settings above the table are the job's, too. Pure. Throws parse_error (errc::config) with `origin`, line and caret, as
/// parse_settings does.
std::optional<job_file> parse_job_file(std::string_view text, std::string_view origin, bool required,
                                       file_owner owner = file_owner::user);

}  // namespace muster
