// A site as people and programs read it: writes all that its file says.
#pragma once

#include <string>
#include <vector>

#include "launch/site/site.hpp"

namespace muster {

/// Everything that is known, each part with its source and date, and what is not known, by name. `topology` is the file of a machine
/// like its nodes; empty: none is installed. Pure.
std::string describe_site(site const& where, std::string const& topology);

/// The same as JSON, with its end of line.
std::string site_json(site const& where, std::string const& topology);

/// A line for each site: name, scheduler, nodes, GPUs of a node, date of the facts. Files with faults are shown with the first of
/// them. Lines of at most `most_width`; 0: any.
std::string site_table(std::vector<site_entry> const& entries, std::size_t most_width);
std::string site_list_json(std::vector<site_entry> const& entries);

}  // namespace muster
