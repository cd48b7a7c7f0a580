// The plot of the published table: its speed-ups beside the simulated ones, as the runs were made and as muster would make them.
#pragma once

#include <string>

#include "bench/simulate/simulated_study.hpp"

namespace muster {

/// An SVG document; both axes are logarithmic. Both studies are of one network of the table. Pure.
std::string published_plot(simulated_study const& as_published, simulated_study const& ours);

}  // namespace muster
