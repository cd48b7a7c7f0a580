// Command-line options of the benchmarks.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

namespace muster {

/// Reads `args` by `known`; words that are no option are an error. Throws errc::usage, with the nearest known option on a
/// mistake.
boost::program_options::variables_map read_options(std::vector<std::string> const& args,
                                                   boost::program_options::options_description const& known);

/// The value of an option that must be given. Throws errc::usage naming it and `example`.
std::string required(boost::program_options::variables_map const& values, std::string const& name, std::string const& example);

/// "1,2,4" as numbers within the bounds, in the order given. Throws parse_error (errc::usage) with a caret.
std::vector<int> parse_list(std::string const& text, std::string const& origin, int low, int high);

}  // namespace muster
