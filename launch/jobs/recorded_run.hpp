// Reads a run from the record in its folder, to repeat it.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Holds what a repetition needs to know of a run.
struct recorded_run {
    std::string version;
    std::string launched_in;  ///< the folder to which relative paths among the options refer
    std::string working_dir;  ///< the ranks' folder
    std::string job_id;
    std::string cluster;  ///< the job's; empty: not known
    std::vector<std::string> command;
    std::vector<std::string> options;
    std::vector<std::string> left_out;  ///< variables that may be secrets
};

/// Reads run.json in `folder`. Throws errc::usage if it is missing, errc::config if it is not such a record or others may have
/// written it.
recorded_run read_recorded_run(std::string const& folder);

/// Returns the variables by which a job's script tells its program about the array, the chain and the folder of results, as that
/// run had them; none without such a record. Throws errc::config for a record that others may have written.
environment read_script_variables(std::string const& folder);

/// Returns `options` changed so that a second run makes a new folder: without %j it would replace `folder`, the first run's.
/// Pure.
std::vector<std::string> with_own_folder(std::vector<std::string> options, std::string const& folder);

/// Returns variables of the run's --env whose values its record leaves out as secrets and which `now` lacks. Pure.
std::vector<std::string> missing_secrets(std::vector<std::string> const& options, environment const& now);

}  // namespace muster
