// The options that `muster run` and `muster plan` share.
#pragma once

#include <boost/program_options.hpp>

#include "launch/request.hpp"

namespace muster {

extern char const* const placement_help;

void add_placement_options(boost::program_options::options_description& description);
/// Throws errc::usage.
request read_placement_options(boost::program_options::variables_map const& values);
bool read_scheduler_local(boost::program_options::variables_map const& values);

}  // namespace muster
