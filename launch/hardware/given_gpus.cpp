#include "launch/hardware/given_gpus.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

[[noreturn]] void refuse(std::string_view spec, std::string_view at, std::string const& message) {
    throw parse_error("--gpus", spec, static_cast<std::size_t>(at.data() - spec.data()), message, errc::usage);
}

gpu on_numa(topology const& machine, std::string_view spec, std::string_view piece) {
    auto const number = parse_integer(trim(piece));
    auto const fits = [&](core const& c) { return number && c.numa == *number; };
    if (std::none_of(machine.cores.begin(), machine.cores.end(), fits))
        refuse(spec, piece, fmt::format("expected a NUMA node with cores of {}, as in numa:3,2,1,0", machine.host));
    gpu g;
    g.numa = static_cast<int>(*number);
    return g;
}

gpu next_to(topology const& machine, std::string_view spec, std::string_view piece) {
    gpu g;
    try {
        g.near = cpuset::from_list(piece);
    } catch (parse_error const&) {
    }
    if (intersect(g.near, machine.allowed()).empty())
        refuse(spec, piece, fmt::format("expected hardware threads of {}, as in cpus:24-31,56-63/0-7,32-39", machine.host));
    return g;
}

std::vector<gpu> parse(topology const& machine, std::string_view spec) {
    constexpr std::string_view by_numa = "numa:", by_cpus = "cpus:";
    std::vector<gpu> gpus;
    if (spec == "none") return gpus;
    if (spec.starts_with(by_numa)) {
        for (auto const piece : split(spec.substr(by_numa.size()), ',')) gpus.push_back(on_numa(machine, spec, piece));
    } else if (spec.starts_with(by_cpus)) {
        for (auto const piece : split(spec.substr(by_cpus.size()), '/')) gpus.push_back(next_to(machine, spec, piece));
    } else {
        auto const count = parse_integer(spec);
        if (!count || *count < 0 || *count > most_gpus_of_node)
            refuse(spec, spec, "expected a number (4), numa:3,2,1,0, cpus:24-31,56-63/0-7,32-39 or none");
        gpus.resize(static_cast<std::size_t>(*count));
    }
    if (gpus.size() > most_gpus_of_node) refuse(spec, spec, fmt::format("more than {} GPUs", most_gpus_of_node));
    return gpus;
}

}  // namespace

topology with_gpus(topology machine, std::string_view spec) {
    machine.gpus = parse(machine, spec);
    for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
        machine.gpus[i].index = static_cast<int>(i);
        machine.gpus[i].name = "GPU of --gpus";
    }
    machine.gpus_in_node = static_cast<int>(machine.gpus.size());
    machine.gpu_note = fmt::format("--gpus {}", spec);
    return machine;
}

}  // namespace muster
