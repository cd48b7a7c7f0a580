// `muster script`: prints a job script for a site.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/scripts/script_plan.hpp"
#include "launch/settings/resolve_settings.hpp"

namespace muster {

/// Throws errc::usage for what is not an option, a missing one, a second one or a value that does not parse; errc::config for a
/// settings file that is not right.
script_options parse_script_options(std::vector<std::string> const& args, settings_sources const& sources = {});

/// The site of `options` is loaded and the script planned; options.muster, site and template_file become whole paths. Throws as
/// load_site and plan_script.
script_plan plan_job(script_options& options, environment const& env);

/// The script by the template of that file, or the built-in one. Throws errc::usage if the file is not there, errc::config
/// if it is no template.
std::string render_script(script_request const& request, std::string const& template_file);

/// The subcommand, without its own name in `args`: the script on standard output, notes on standard error. Returns the exit code;
/// throws errc::usage or errc::config for what the user can change. Nothing is printed on standard output unless all is right.
int script_command(std::vector<std::string> const& args, environment const& env);

}  // namespace muster
