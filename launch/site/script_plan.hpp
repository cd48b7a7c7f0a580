// The plan of a job script: checks what the user asks for against what a site allows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "jobscripts/script_request.hpp"
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

/// What the script is made from, and what the user should know about it.
struct script_plan {
    script_request request;
    std::vector<std::string> notes;

    bool operator==(script_plan const&) const = default;
};

/// Pure. Throws errc::usage, with the ways out, if the GPUs do not fill nodes of that site, if the job is outside the queue's
/// limits (naming the queues it fits), or if the site wants an account or a queue and there is none.
script_plan plan_script(site const& where, script_options const& options);

}  // namespace muster
