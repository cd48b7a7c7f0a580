// A finding of muster doctor: one thing that was examined.
#pragma once

#include <optional>
#include <string>

#include "launch/hardware/topology.hpp"

namespace muster {

struct finding {
    enum class state { ok, note, missing };
    state how;
    std::string what;
    std::string detail;
    std::string advice;  ///< what to do about it; empty if nothing
    bool operator==(finding const&) const = default;
};

/// Of a machine on which no GPU is visible; `asked` are the GPUs that the job has there, if it has any: then no rank can be placed. Pure.
finding describe_no_gpu(topology const& machine, std::optional<int> asked, bool verbose);

/// Of a machine that belongs to PBS; the paths of qsub and qstat, empty where they are not along PATH. Pure.
finding describe_pbs(std::string const& qsub, std::string const& qstat);

}  // namespace muster
