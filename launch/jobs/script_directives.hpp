// Turns the directives of a job script into words of a command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Returns the words after `prefix` ("#SBATCH ", "#PBS ", "#FLUX: ") in the head of `script`, without those that only a batch job
/// has (output files, requeueing, arrays). Pure. Throws parse_error for a quote that is not closed.
std::vector<std::string> script_directives(std::string_view script, std::string_view prefix);

}  // namespace muster
