#include "launch/placement/node_share.hpp"

#include <fmt/format.h>

namespace muster {

namespace {

int count_threads(topology const& machine) {
    return static_cast<int>(machine.allowed().cpus.size());
}

}  // namespace

placement_request with_share(placement_request wanted, allocation const& given, node const& one) {
    wanted.share.gpu_ids = one.gpu_ids;
    if (given.scheduler != scheduler_kind::pbs) return wanted;
    wanted.share.may_be_part = given.shares_nodes;
    // What a site's file says of its nodes, which are given whole, is held against the node, too.
    if (!one.gpus_counted || !given.shares_nodes) wanted.share.gpus = one.gpus;
    wanted.share.cpus = one.cpus;
    return wanted;
}

environment with_given_gpus(environment variables, node_part const& share) {
    if (share.gpu_ids.empty()) return variables;
    for (auto const* const name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"})
        variables.set(name, share.gpu_ids);
    for (auto const* const name : {"HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}) variables.unset(name);
    return variables;
}

bool is_gpu_share_unclear(topology const& machine, placement_request const& wanted) {
    auto const& share = wanted.share;
    return share.may_be_part && share.gpus && *share.gpus < static_cast<int>(machine.gpus.size()) && wanted.gpu_map.empty();
}

bool is_core_share_unclear(topology const& machine, placement_request const& wanted) {
    auto const& share = wanted.share;
    return share.may_be_part && share.cpus && *share.cpus < count_threads(machine) && wanted.cpu_map.empty() &&
           wanted.bind_to == bind_policy::share;
}

std::string share_note(topology const& machine, placement_request const& wanted) {
    auto const& share = wanted.share;
    if (share.gpus.value_or(0) > 0 && machine.gpus.empty())
        return fmt::format("{}: the job has {} GPUs there, and none is to be seen{}; see muster doctor", machine.host,
                           *share.gpus, machine.gpu_note.empty() ? "" : fmt::format(" ({})", machine.gpu_note));
    std::string what;
    if (is_gpu_share_unclear(machine, wanted)) what = fmt::format("{} of the {} GPUs", *share.gpus, machine.gpus.size());
    if (is_core_share_unclear(machine, wanted))
        what += fmt::format("{}{} of the {} hardware threads", what.empty() ? "" : " and ", *share.cpus, count_threads(machine));
    if (what.empty()) return "";
    return fmt::format(
        "{}: the job has {}, and nothing says which, so ranks are not bound to them and may meet another job's; ask for whole "
        "hosts (-l place=scatter:excl)",
        machine.host, what);
}

}  // namespace muster
