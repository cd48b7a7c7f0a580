#include "launch/placement/placement_request.hpp"

#include <fmt/format.h>

#include <array>

#include "base/error.hpp"

namespace muster {

namespace {

constexpr std::array<bind_policy, 6> bind_policies{bind_policy::share,  bind_policy::core, bind_policy::numa,
                                                   bind_policy::socket, bind_policy::gpu,  bind_policy::none};
constexpr std::array<gpu_visibility, 3> visibilities{gpu_visibility::all, gpu_visibility::own, gpu_visibility::own_first};

}  // namespace

std::string_view to_string(bind_policy policy) noexcept {
    switch (policy) {
        case bind_policy::share: return "share";
        case bind_policy::core: return "core";
        case bind_policy::numa: return "numa";
        case bind_policy::socket: return "socket";
        case bind_policy::gpu: return "gpu";
        case bind_policy::none: return "none";
    }
    return "unknown";
}

bind_policy parse_bind_policy(std::string_view word) {
    for (auto const policy : bind_policies)
        if (word == to_string(policy)) return policy;
    throw error(errc::usage, fmt::format("--bind-to {} is unknown; use share, core, numa, socket, gpu or none", word));
}

std::string_view to_string(gpu_visibility seen) noexcept {
    switch (seen) {
        case gpu_visibility::all: return "all";
        case gpu_visibility::own: return "own";
        case gpu_visibility::own_first: return "own-first";
    }
    return "unknown";
}

gpu_visibility parse_gpu_visibility(std::string_view word) {
    for (auto const seen : visibilities)
        if (word == to_string(seen)) return seen;
    throw error(errc::usage, fmt::format("--gpu-visibility {} is unknown; use all, own or own-first", word));
}

}  // namespace muster
