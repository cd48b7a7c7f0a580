#include "launch/hardware/discover_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/hardware/topology.hpp"

namespace muster {

namespace {

[[noreturn]] void refuse(std::string_view spec, std::string_view at, std::string const& message) {
    throw parse_error("--gpus", spec, static_cast<std::size_t>(at.data() - spec.data()), message, errc::usage);
}

gpu on_numa(topology const& machine, std::string_view spec, std::string_view piece) {
    auto const number = parse_integer(trim(piece));
    auto const fits = [&](core const& c) { return number && c.numa == *number; };
    if (std::ranges::none_of(machine.cores, fits))
        refuse(spec, piece, fmt::format("expected a NUMA node with cores of {}, as in numa:3,2,1,0", machine.host));
    gpu g;
    g.numa = static_cast<int>(*number);
    return g;
}

gpu next_to(topology const& machine, std::string_view spec, std::string_view piece) {
    gpu g;
    g.near = cpuset::from_list_or_none(piece);
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

namespace {

/// One entry of a list such as CUDA_VISIBLE_DEVICES, with what errors about it show.
struct visible_entry {
    std::string_view variable;
    std::string_view value;
    std::string_view text;

    [[noreturn]] void refuse(std::string const& why) const { throw_error(errc::placement, "{}={}: {}", variable, value, why); }
};

/// Returns whether the entry "MIG-GPU-UUID/GI/CI", the form of drivers before 470, names this slice.
bool names_slice(gpu const& g, visible_entry const& entry) {
    auto const parts = split(entry.text.substr(4), '/');
    if (parts.size() != 3) entry.refuse(fmt::format("'{}' is not like MIG-GPU-UUID/GI/CI", entry.text));
    auto const gpu_instance = parse_integer(parts[1]);
    auto const compute_instance = parse_integer(parts[2]);
    if (!gpu_instance || !compute_instance) entry.refuse(fmt::format("'{}' is not like MIG-GPU-UUID/GI/CI", entry.text));
    return g.mig && g.mig->gpu_uuid == parts[0] && g.mig->gpu_instance == *gpu_instance &&
           g.mig->compute_instance == *compute_instance;
}

bool names(visible_entry const& entry, gpu const& g) {
    if (auto const index = parse_integer(entry.text)) return g.index == *index;
    if (entry.text.starts_with("MIG-GPU-")) return g.uuid == entry.text || names_slice(g, entry);
    if (entry.text.starts_with("MIG-")) return g.mig && std::string_view(g.uuid).starts_with(entry.text);
    if (entry.text.starts_with("GPU-")) return std::string_view(g.mig ? g.mig->gpu_uuid : g.uuid).starts_with(entry.text);
    entry.refuse(fmt::format("'{}' is neither an index nor the UUID of a GPU (GPU-…) or of a MIG slice (MIG-…)", entry.text));
}

/// Returns one GPU, or all slices of one.
std::vector<gpu const*> find_gpus(std::vector<gpu> const& all, visible_entry const& entry) {
    std::vector<gpu const*> matches;
    for (auto const& g : all)
        if (names(entry, g)) matches.push_back(&g);
    if (matches.empty()) {
        if (all.empty()) entry.refuse("there is no GPU here; unset it");
        entry.refuse(fmt::format("there is no GPU '{}' here, only {} ({} to {}); unset it or name those that exist", entry.text,
                                 all.size() == 1 ? "one" : fmt::format("{}", all.size()), visible_name(all.front()),
                                 visible_name(all.back())));
    }
    bool const slices = !entry.text.starts_with("MIG-");
    auto const another = [&](gpu const* g) { return !(slices && g->mig && g->index == matches.front()->index); };
    if (matches.size() > 1 && std::any_of(matches.begin() + 1, matches.end(), another))
        entry.refuse(fmt::format("'{}' fits {} GPUs; give more of the UUID", entry.text, matches.size()));
    return matches;
}

/// Selects within what ROCR leaves, to which the numbers of HIP's list refer.
std::vector<gpu> within(std::vector<gpu> const& seen, std::string_view value, std::string_view variable) {
    auto renumbered = seen;
    for (std::size_t i = 0; i < renumbered.size(); ++i) renumbered[i].index = static_cast<int>(i);
    std::vector<gpu> selected;
    for (auto const& g : select_gpus(renumbered, value, variable)) selected.push_back(seen[static_cast<std::size_t>(g.index)]);
    return selected;
}

}  // namespace

std::string_view to_string(gpu_vendor vendor) noexcept {
    switch (vendor) {
        case gpu_vendor::nvidia: return "nvidia";
        case gpu_vendor::amd: return "amd";
        case gpu_vendor::intel: return "intel";
    }
    return "unknown";
}

bool means_no_gpu(std::string_view visible_devices) noexcept {
    auto const value = trim(visible_devices);
    return value.empty() || value == "-1" || value == "NoDevFiles" || value == "none";
}

std::string visible_name(gpu const& device) {
    bool const by_uuid = device.mig || (!device.known_to_driver && !device.uuid.empty());
    return by_uuid ? device.uuid : std::to_string(device.index);
}

std::vector<gpu> select_gpus(std::vector<gpu> const& all, std::string_view visible_devices, std::string_view variable) {
    std::vector<gpu> selected;
    if (means_no_gpu(visible_devices)) return selected;
    for (auto const piece : split(visible_devices, ',')) {
        visible_entry const entry{variable, visible_devices, trim(piece)};
        for (auto const* found : find_gpus(all, entry)) {
            if (std::ranges::find(selected, *found) != selected.end())
                entry.refuse(fmt::format("'{}' is named twice", entry.text));
            selected.push_back(*found);
        }
    }
    return selected;
}

gpu_list visible_gpus(gpu_list const& found, environment const& variables) {
    gpu_list seen = found;
    auto const note_hiding = [&](std::string_view name, std::string_view value) {
        if (means_no_gpu(value))
            seen.hidden_by = value.empty() ? fmt::format("{}, which is empty", name) : fmt::format("{}={}", name, value);
    };
    if (found.gpus.empty()) {
        for (auto const* name : {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"})
            if (auto const value = variables.get(name)) {
                note_hiding(name, *value);
                // Without muster, programs for GPUs would use the CPU here, so this is no error.
                if (!means_no_gpu(*value)) seen.in_vain = fmt::format("{}={}", name, *value);
            }
        return seen;
    }
    auto const note = [&](std::string_view name, std::string_view value) {
        seen.note += fmt::format(", within {}={}", name, value);
        note_hiding(name, value);
    };
    auto const vendor = found.gpus.front().vendor;
    if (vendor != gpu_vendor::amd) {
        auto const* const name = vendor == gpu_vendor::nvidia ? "CUDA_VISIBLE_DEVICES" : "ZE_AFFINITY_MASK";
        if (auto const value = variables.get(name)) {
            // An empty ZE_AFFINITY_MASK, unlike CUDA's variable, restricts nothing, and "0.1" is a tile: keep its GPU.
            if (vendor == gpu_vendor::intel) {
                if (value->empty() || value->find('.') != std::string::npos) return seen;
            }
            seen.gpus = select_gpus(found.gpus, *value, name);
            note(name, *value);
        }
        return seen;
    }
    auto const rocr = variables.get("ROCR_VISIBLE_DEVICES");
    if (rocr) {
        seen.gpus = select_gpus(found.gpus, *rocr, "ROCR_VISIBLE_DEVICES");
        note("ROCR_VISIBLE_DEVICES", *rocr);
    }
    for (auto const* name : {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}) {
        auto const value = variables.get(name);
        if (!value) continue;
        if (value == rocr) break;  // the scheduler sets the same list in every variable it knows
        seen.gpus = within(seen.gpus, *value, name);
        note(name, *value);
        break;
    }
    return seen;
}

namespace {

/// Returns the usual name of the scheduler whose job this process is in; nothing outside of a job.
std::optional<std::string_view> scheduler_name(environment const& variables) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> signs{{{"SLURM_JOB_ID", "Slurm"},
                                                                                         {"PBS_JOBID", "PBS"},
                                                                                         {"COBALT_JOBID", "Cobalt"},
                                                                                         {"LSB_JOBID", "LSF"},
                                                                                         {"FLUX_URI", "Flux"},
                                                                                         {"FLUX_JOB_ID", "Flux"},
                                                                                         {"SLURM_JOBID", "Slurm"}}};
    for (auto const& [variable, name] : signs)
        if (variables.has(variable)) return name;
    return std::nullopt;
}

gpu make_gpu(std::string_view scheduler, std::string_view entry, int position) {
    gpu g;
    auto const index = parse_integer(entry);
    g.index = index && *index >= 0 && *index < 65536 ? static_cast<int>(*index) : position;
    if (!index) g.uuid = entry;
    g.name = fmt::format("{}'s {} {}", scheduler, scheduler == "Slurm" ? "gres/gpu" : "GPU", entry);
    g.known_to_driver = false;
    return g;
}

}  // namespace

gpu_list scheduler_gpus(environment const& variables) {
    auto const scheduler = scheduler_name(variables);
    if (!scheduler) return {};
    gpu_list list;
    auto const describe = [&](std::string_view variable, std::string_view value) {
        list.note = fmt::format("known to {} only ({}={}); no driver here sees them, so their NUMA node is unknown", *scheduler,
                                variable, value);
        return list;
    };
    for (auto const* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "SLURM_STEP_GPUS"}) {
        auto const value = variables.get(name);
        if (!value) continue;
        if (means_no_gpu(*value)) return {};
        for (auto const piece : split(*value, ',')) {
            if (trim(piece).empty() || list.gpus.size() == most_gpus_of_node) continue;
            list.gpus.push_back(make_gpu(*scheduler, trim(piece), static_cast<int>(list.gpus.size())));
        }
        return list.gpus.empty() ? gpu_list{} : describe(name, *value);
    }
    if (auto const text = variables.get("SLURM_GPUS_ON_NODE"))
        if (auto const count = parse_integer(trim(*text)); count && *count > 0 && *count <= most_gpus_of_node) {
            for (int i = 0; i < static_cast<int>(*count); ++i) list.gpus.push_back(make_gpu(*scheduler, std::to_string(i), i));
            return describe("SLURM_GPUS_ON_NODE", *text);
        }
    return {};
}

}  // namespace muster
