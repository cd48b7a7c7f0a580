// The variables that `-x` gives to the ranks.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Sets each `NAME=value` in `variables`; a bare `NAME` must be there already. Throws errc::usage naming the entry.
void apply_exports(environment& variables, std::vector<std::string> const& exports);

/// Whether OMP_NUM_THREADS is PBS's own word: PBS gives every process of a job the CPUs of a whole chunk in it, as in NCPUS,
/// however many ranks share the chunk. Pure.
bool is_threads_of_pbs(environment const& variables);

/// The launcher's variables as its ranks get them: `inherited` without what told of an outer launcher, without
/// PBS's OMP_NUM_THREADS unless an export names it, and with the exports. Throws as apply_exports.
environment variables_for_ranks(environment const& inherited, std::vector<std::string> const& exports);

/// Removes the variables whose names match one of `patterns` (as a shell's wildcards do), except for those that `-x` names.
void leave_out(environment& variables, std::vector<std::string> const& patterns, std::vector<std::string> const& exports);

/// Sets each `NAME=value` again, after muster set its own: `-x` also overrides what muster sets.
void set_explicit(environment& variables, std::vector<std::string> const& exports);

}  // namespace muster
