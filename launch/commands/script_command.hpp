// `muster script`: a job script for a site, on standard output.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/units.hpp"
#include "jobscripts/script_request.hpp"
#include "launch/settings/resolve_settings.hpp"
#include "launch/site/site.hpp"

namespace muster {

/// The command line of `muster script`.
struct script_options {
    bool help = false;
    std::string site;
    int gpus = 0;
    std::optional<duration> walltime;
    std::string account;
    std::string queue;
    std::string job_name = "muster";
    std::optional<int> gpus_per_node;
    std::optional<int> cpus_per_gpu;
    std::string constraint;
    std::string filesystems;
    bool network_environment = true;
    bool check_limits = true;
    std::string muster;         ///< empty: this program's own path
    std::string template_file;  ///< empty: the one built in
    std::vector<std::string> command;

    bool operator==(script_options const&) const = default;
};

/// Throws errc::usage for what is not an option, a missing one, a second one or a value that does not parse; errc::config for a
/// settings file that is not right.
script_options parse_script_options(std::vector<std::string> const& args, settings_sources const& sources = {});

/// What the script is made from, and what the user should know about it.
struct script_plan {
    script_request request;
    std::vector<std::string> notes;

    bool operator==(script_plan const&) const = default;
};

/// Pure. Throws errc::usage, with the ways out, if the GPUs do not fill nodes of that site, if the job is outside the queue's
/// limits (naming the queues it fits), or if the site wants an account or a queue and there is none.
script_plan plan_script(site const& where, script_options const& options);

/// The subcommand, without its own name in `args`: the script on standard output, notes on standard error. Returns the exit code;
/// throws errc::usage or errc::config for what the user can change. Nothing is printed on standard output unless all is right.
int script_command(std::vector<std::string> const& args, environment const& env);

}  // namespace muster
