// Reads the settings in one table of a TOML document, as in a site file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/settings/setting.hpp"
#include "launch/settings/toml_reader.hpp"

namespace muster {

/// As parse_settings; `path` names the table in errors, and `meaningless`, if not empty, is a key that cannot stand in it.
std::vector<file_setting> read_settings(toml_document const& document, toml::table const& table, std::string const& path,
                                        std::string_view meaningless = {});

}  // namespace muster
