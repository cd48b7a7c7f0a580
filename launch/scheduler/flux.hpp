// Reads what Flux says about a job: its hosts, cores and GPUs (R, RFC 20).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/scheduler/allocation.hpp"

namespace muster {

// A Flux resource set, R version 1, as `flux resource R` and `flux job info ID R` print it (Flux RFC 20).

struct flux_resources {
    /// Each has a slot for each core, and GPUs as R numbers them: none if R lists none. Brokers of one host are one node.
    std::vector<node> nodes;
    std::optional<std::chrono::system_clock::time_point> ends_at;
    bool operator==(flux_resources const&) const = default;
};

/// Reads hosts of execution.nodelist, one for each rank of R_lite in order, with that rank's cores and GPUs; each host once.
/// Pure. Throws parse_error naming `origin` for any other text.
flux_resources parse_flux_resources(std::string_view text, std::string_view origin);

/// Returns a job's number with an ASCII f: "f6tw1Mjm" for "ƒ6tw1Mjm". Flux prints UTF-8 and accepts both forms. Pure.
std::string plain_flux_id(std::string_view id);

}  // namespace muster
