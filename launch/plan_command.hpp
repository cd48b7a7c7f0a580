// muster plan.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/placement.hpp"

namespace muster {

/// Prints where each rank would go, without starting anything; returns the exit code.
int plan_command(std::vector<std::string> const& args, environment const& variables);

/// The map as a table for people, or as JSON (schema "muster.plan/1"). Pure.
std::string plan_table(placement const& where);
std::string plan_json(placement const& where);

}  // namespace muster
