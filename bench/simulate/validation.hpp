// The validation of the platforms: simulated allreduces beside the bus bandwidths that were published of the machines.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "bench/simulate/platform_model.hpp"

namespace muster {

struct validated_rate {
    published_rate published;
    double simulated_gbs = 0;
    double error() const noexcept { return simulated_gbs / published.busbw_gbs - 1; }
};

/// One allreduce of 256 MiB at each published rate of this platform (empty: of all).
std::vector<validated_rate> validate_platforms(std::string const& platform, environment const& variables);

std::string table_of(std::vector<validated_rate> const& rates);
nlohmann::json to_json(std::vector<validated_rate> const& rates);

/// By what communication's simulated time is to be multiplied, at least and at most, to meet every published rate: what
/// validate_platforms() found when this was written (docs/simulation.md).
struct error_range {
    double least = 0.76;  ///< DGX A100, 2 nodes: 146.9 GB/s simulated, 192 published
    double most = 1.78;   ///< Polaris, 2 nodes: 63.9 GB/s simulated, 36 published
};

}  // namespace muster
