// Allreduces that were measured before: reads them from a kept result and fits latency and rate to each set.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/in_job/link_fit.hpp"

namespace muster {

/// Allreduces of f32 over so many ranks by one backend: a call takes alpha and a time for each byte.
struct measured_allreduce {
    std::string backend;  ///< "shm", "mpi"
    int ranks = 2;
    bool between_nodes = false;
    link_fit fitted;  ///< to the medians of its sizes
};

struct allreduce_measurements {
    std::string file;  ///< as it is named to people
    std::vector<measured_allreduce> all;
    /// Null where there are none.
    measured_allreduce const* find(std::string_view backend, int ranks, bool between_nodes) const noexcept;
};

/// From the JSON of muster-bench collectives or collectives-here. Sums and averages count, in place where there is such; a set of fewer
/// than three sizes is left out, and so is what is simulated or of other libraries. Throws errc::invalid_data, also where nothing is left.
allreduce_measurements read_allreduces(nlohmann::json const& document, std::string const& file);
/// The same from a file. Throws errc::not_found too.
allreduce_measurements read_allreduce_file(std::string const& path);

}  // namespace muster
