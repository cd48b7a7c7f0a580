// The changes that try the advice on a study's causes: other options of muster run, of the built-in training, or variables.
#pragma once

#include <vector>

#include "bench/study/findings.hpp"
#include "bench/study/tried_advice.hpp"

namespace muster {

/// At least one for each cause, in their order, without rounds. What can only be changed within a program of the user's, or is no
/// matter of one, has `not_tried`. The same change comes once. Pure.
std::vector<tried_advice> advice_changes(study_plan const& plan, std::vector<scaling_finding> const& causes);

}  // namespace muster
