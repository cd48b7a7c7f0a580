// Reads a settings file, muster.toml.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/settings/setting.hpp"
#include "launch/settings/toml_reader.hpp"

namespace muster {

/// The settings in `text`, in order of name. Pure. Throws parse_error (errc::config) with `origin`, line and caret: no TOML, an
/// unknown key (with the nearest known one), a key that only the command line has, a wrong type or value. A table [job] is passed
/// over: see job_file.hpp.
std::vector<file_setting> parse_settings(std::string_view text, std::string_view origin);

// Reads the settings in one table of a TOML document, as in a site file.

/// As parse_settings; `path` names the table in errors ("job": that of a job file), and `meaningless`, if not empty, is a key that cannot stand in it.
std::vector<file_setting> read_settings(toml_document const& document, toml::table const& table, std::string const& path,
                                        std::string_view meaningless = {});

}  // namespace muster
