// muster.toml, and the table [settings] of a site file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/settings/setting.hpp"
#include "launch/settings/toml_reader.hpp"

namespace muster {

/// The settings in `text`, in order of name. Pure. Throws parse_error (errc::config) with `origin`, line and caret: no TOML, an
/// unknown key (with the nearest known one), a key that only the command line has, a wrong type or value.
std::vector<file_setting> parse_settings(std::string_view text, std::string_view origin);

/// The same for one table of a document, in which `meaningless`, if not empty, cannot stand.
std::vector<file_setting> read_settings(toml_document const& document, toml::table const& table, std::string const& path,
                                        std::string_view meaningless = {});

}  // namespace muster
