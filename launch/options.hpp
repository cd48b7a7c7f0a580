// Command-line options as Boost.Program_options reads them, with muster's own rules.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

namespace muster {

/// Reads `args` by `known`. The first word that is no option, or everything behind `--`, is the program and its arguments,
/// untouched, in `command`. Throws errc::usage with the nearest known option on a mistake.
boost::program_options::variables_map parse_options(std::vector<std::string> const& args,
                                                    boost::program_options::options_description const& known,
                                                    std::vector<std::string>& command);

}  // namespace muster
