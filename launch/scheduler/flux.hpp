// Reads what Flux says of a job: its hosts, cores and GPUs (R, RFC 20).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/scheduler/allocation.hpp"

namespace muster {

// A Flux resource set, R version 1: what `flux resource R` and `flux job info ID R` print (Flux RFC 20).

struct flux_resources {
    /// A slot for each core; GPUs as R numbers them: none where it lists none. Brokers of one host are one node.
    std::vector<node> nodes;
    std::optional<std::chrono::system_clock::time_point> ends_at;
    bool operator==(flux_resources const&) const = default;
};

/// Hosts of execution.nodelist, one for each rank of R_lite in order, with that rank's cores and GPUs; each host once. Pure. Throws parse_error
/// naming `origin` if it is no such text.
flux_resources parse_flux_resources(std::string_view text, std::string_view origin);

/// A job's number with an ASCII f in front: "f6tw1Mjm" of "ƒ6tw1Mjm", as Flux prints it in UTF-8 and takes it in both forms. Pure.
std::string plain_flux_id(std::string_view id);

}  // namespace muster
