// A Flux resource set, R version 1: what `flux resource R` and `flux job info ID R` print (Flux RFC 20).
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "launch/scheduler/allocation.hpp"

namespace muster {

struct flux_resources {
    std::vector<node> nodes;  ///< a slot for each core; GPUs as R counts them: none where it lists none
    std::optional<std::chrono::system_clock::time_point> ends_at;
    bool operator==(flux_resources const&) const = default;
};

/// Hosts of execution.nodelist, one for each rank of R_lite in order, with that rank's cores and GPUs. Pure. Throws parse_error
/// naming `origin` if it is no such text.
flux_resources parse_flux_resources(std::string_view text, std::string_view origin);

}  // namespace muster
