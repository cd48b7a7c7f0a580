// links: muster::launch
// iterations: 20000
// Any bytes as what says which GPUs there are and which CPUs belong to whom: values of CUDA_VISIBLE_DEVICES and its like, --gpus,
// maps of CPUs by rank and by GPU, reserved CPUs. Bindings that keep their promises (ranks that outnumber the cores are bound to
// none), or an error with a cause.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/hardware/discover_topology.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/placement/binding_steps.hpp"

namespace {

using namespace muster;

topology machine() {
    topology t;
    t.host = "h";
    for (int c = 0; c < 8; ++c) t.cores.push_back({cpuset{{c, c + 8}}, c / 4, 0});
    for (int i = 0; i < 3; ++i) {
        gpu g;
        g.index = i;
        g.uuid = "GPU-a" + std::to_string(i);
        g.numa = i % 2;
        t.gpus.push_back(g);
    }
    for (int i = 7; i < 9; ++i) {
        gpu slice = t.gpus[2];
        slice.uuid = "MIG-b" + std::to_string(i);
        slice.mig = mig_slice{"GPU-a2", i, 0};
        t.gpus.push_back(slice);
    }
    t.gpus.erase(t.gpus.begin() + 2);
    t.gpus_in_node = 4;
    return t;
}

void expect_known(error const& e) {
    if (e.code() == errc::internal || e.code() == errc::system) __builtin_trap();
}

void bind(topology const& t, placement_request const& wanted) {
    try {
        int const ranks = t.gpus.empty() ? 4 : static_cast<int>(t.gpus.size());
        auto const bound = bind_ranks(t, wanted, ranks);
        bool const outnumber = bound.size() > usable_cores(t, wanted).size();
        for (auto const& b : bound)
            if ((b.cores.empty() && !outnumber) || intersect(b.cores, t.allowed()) != b.cores ||
                b.device.has_value() == t.gpus.empty())
                __builtin_trap();
    } catch (error const& e) {
        expect_known(e);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    static topology const here = machine();
    std::string const text(reinterpret_cast<char const*>(data), size);
    for (auto const* name : {"CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE"}) {
        auto const list = scheduler_gpus({{"SLURM_JOB_ID", "1"}, {name, text}});
        topology t = here;
        t.gpus = list.gpus;
        if (!t.gpus.empty() && t.gpus.size() <= 64) bind(t, {.gpus_seen = gpu_visibility::own_first});
    }
    for (auto const vendor : {gpu_vendor::nvidia, gpu_vendor::amd, gpu_vendor::intel}) {
        gpu_list found{here.gpus, ""};
        for (auto& g : found.gpus) g.vendor = vendor;
        try {
            environment const v{{"CUDA_VISIBLE_DEVICES", text},
                                {"ROCR_VISIBLE_DEVICES", text.substr(0, size / 2)},
                                {"HIP_VISIBLE_DEVICES", text.substr(size / 2)},
                                {"ZE_AFFINITY_MASK", text}};
            if (visible_gpus(found, v).gpus.size() > found.gpus.size()) __builtin_trap();
        } catch (error const& e) {
            if (e.code() != errc::placement) __builtin_trap();
        }
    }
    try {
        bind(with_gpus(here, text), {});
    } catch (error const& e) {
        if (e.code() != errc::usage) __builtin_trap();
    }
    placement_request maps;
    for (auto const line : split(text, '\n')) maps.cpu_map.emplace_back(line);
    bind(here, maps);
    bind(here, {.gpu_cpus = maps.cpu_map});
    bind(here, {.smt = false, .reserved_cpus = text});
    return 0;
}
