// The trial of advice: runs a study's program with and without each change, taking turns.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "bench/scaling/run_point.hpp"
#include "bench/study/tried_advice.hpp"

namespace muster {

/// FOLDER/what-if.json holds the rounds that were made, so that a trial that was stopped goes on; a change that is not asked for any
/// more is forgotten. Throws errc::invalid_data.
std::vector<tried_advice> begun_trials(std::filesystem::path const& folder, std::vector<tried_advice> asked);

/// Makes the rounds that are missing of `rounds`, in each of which the study's own runs and all changed ones at a number of ranks take
/// turns; what a round came to is on disk when it ends. Returns the signal that stopped it, or 0.
int try_advice(run_setting const& setting, std::vector<tried_advice>& all, int rounds);

}  // namespace muster
