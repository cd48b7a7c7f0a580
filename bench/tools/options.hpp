// Values of options that several commands of muster-bench read: checked counts, seeds and lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/command/given_options.hpp"

namespace muster {

/// Returns a whole number of at least `least`. Throws errc::usage naming the option.
int count_of(given_options const& given, std::string_view name, int least = 1);

/// Returns "1,2,4" as numbers within the bounds, in their order. Throws parse_error (errc::usage) with a caret.
std::vector<int> parse_list(std::string const& text, std::string const& origin, int low, int high);

/// Returns a share, "5%" or "0.05", from 0 to 1, or up to `most`. Throws parse_error (errc::usage) with a caret.
double parse_share(std::string const& text, std::string const& origin, double most = 1);

/// Returns the path of --muster, else of muster in this program's folder. Throws errc::not_found if it is not executable.
std::string launcher_of(given_options const& given);

}  // namespace muster
