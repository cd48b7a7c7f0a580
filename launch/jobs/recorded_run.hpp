// A run as recorded in its folder, for repeating it.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// What can be repeated of a run.
struct recorded_run {
    std::string version;
    std::string launched_in;  ///< the folder from which relative paths among the options are meant
    std::string working_dir;  ///< of the ranks
    std::string job_id;
    std::string cluster;  ///< of the job; empty: not known
    std::vector<std::string> command;
    std::vector<std::string> options;
    std::vector<std::string> left_out;  ///< variables that may be secrets
};

/// From run.json in `folder`. Throws errc::usage if it is missing, errc::config if it is not such a record or others may have written it.
recorded_run read_recorded_run(std::string const& folder);

/// The variables by which a job's script tells its program of the array, the chain and the folder of results, as that run had them; none where there
/// is no such record. Throws errc::config for a record that others may have written.
environment read_script_variables(std::string const& folder);

/// `options` so that a second run leaves a new folder: one without %j would take the place of the first, which is `folder`. Pure.
std::vector<std::string> with_own_folder(std::vector<std::string> options, std::string const& folder);

/// The variables that the run was given by --env, whose values its record leaves out as secrets and which are not set in `now`. Pure.
std::vector<std::string> missing_secrets(std::vector<std::string> const& options, environment const& now);

}  // namespace muster
