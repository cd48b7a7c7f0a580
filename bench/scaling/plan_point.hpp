// One number of ranks before its runs. It asks `muster plan` where they will be.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "bench/study/study.hpp"

namespace muster {

/// The plan of one number of ranks, from `muster plan`.
struct planned_point {
    study_point point;
    std::string scheduler;  ///< "local" outside of any job
};

/// Returns the options of muster run and muster plan for this number of ranks.
std::vector<std::string> point_options(study_plan const& plan, int ranks);

/// Throws errc::placement with muster's message if the ranks cannot be placed.
planned_point plan_point(std::string const& muster, study_plan const& plan, int ranks, environment const& variables);

/// Reads the same from the text of `muster plan --json` (schema "muster.plan/1"). Throws errc::invalid_data. Pure.
planned_point read_planned_point(nlohmann::json const& document, int ranks);

}  // namespace muster
