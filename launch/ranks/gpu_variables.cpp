#include "launch/ranks/gpu_variables.hpp"

#include <string>

namespace muster {

void set_gpu_variables(environment& v, binding const& place) {
    if (!place.device) return;
    auto const index = std::to_string(place.device_index);
    v.set("MUSTER_GPU_INDEX", index);
    v.set("JAX_LOCAL_DEVICE_IDS", index);
    v.unset("MUSTER_GPU_UUID");
    if (!place.device->uuid.empty()) v.set("MUSTER_GPU_UUID", place.device->uuid);
    auto const& visible = place.visible_devices;
    switch (place.device->vendor) {
        case gpu_vendor::nvidia:
            if (place.device->known_to_driver) v.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
            if (!visible.empty()) v.set("CUDA_VISIBLE_DEVICES", visible);
            break;
        case gpu_vendor::amd:
            if (visible.empty()) break;
            v.set("ROCR_VISIBLE_DEVICES", visible);
            // HIP would count these within ROCR_VISIBLE_DEVICES, and takes CUDA's for its own.
            for (auto const* name : {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}) v.unset(name);
            break;
        case gpu_vendor::intel:
            if (!visible.empty()) v.set("ZE_AFFINITY_MASK", visible);
            break;
    }
}

}  // namespace muster
