#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/hardware/gpu.hpp"

namespace muster {

namespace {

/// One entry of a list such as CUDA_VISIBLE_DEVICES, and what errors about it show.
struct visible_entry {
    std::string_view variable;
    std::string_view value;
    std::string_view text;

    [[noreturn]] void refuse(std::string const& why) const {
        throw error(errc::placement, fmt::format("{}={}: {}", variable, value, why));
    }
};

/// "MIG-GPU-UUID/GI/CI": how drivers before 470 name a slice.
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

/// One GPU, or all the slices of one.
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

/// HIP's own list counts within what ROCR leaves.
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
            if (std::find(selected.begin(), selected.end(), *found) != selected.end())
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
        // Without any GPU a value that names one cannot hold.
        if (auto const value = variables.get("CUDA_VISIBLE_DEVICES")) select_gpus({}, *value);
        for (auto const* name : {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"})
            if (auto const value = variables.get(name)) note_hiding(name, *value);
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
            // An empty ZE_AFFINITY_MASK, unlike CUDA's variable, restricts nothing, and "0.1" is a tile: the GPU it is of.
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
        if (value == rocr) break;  // a scheduler that says the same list in every variable it knows
        seen.gpus = within(seen.gpus, *value, name);
        note(name, *value);
        break;
    }
    return seen;
}

}  // namespace muster
