// Reads a settings file, muster.toml.
#pragma once

#include <string_view>
#include <vector>

#include "launch/settings/setting.hpp"

namespace muster {

/// The settings in `text`, in order of name. Pure. Throws parse_error (errc::config) with `origin`, line and caret: no TOML, an
/// unknown key (with the nearest known one), a key that only the command line has, a wrong type or value. A table [job] is passed
/// over: see job_file.hpp.
std::vector<file_setting> parse_settings(std::string_view text, std::string_view origin);

}  // namespace muster
