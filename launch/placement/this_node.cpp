#include "launch/placement/this_node.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "launch/hardware/discover_topology.hpp"
#include "launch/placement/binding_steps.hpp"
#include "launch/scheduler/host_choice.hpp"
#include "launch/scheduler/hosts/bracketed_address.hpp"
#include "launch/system/network.hpp"

namespace muster {

topology discover_here(environment const& variables, hwloc_handle* kept) {
    return discover_topology(short_host_name(), current_affinity(), variables, kept);
}

node node_of(topology const& machine, placement_request const& wanted) {
    auto const cores = static_cast<int>(usable_cores(machine, wanted).size());
    return local_allocation(machine.host, std::min(cores, machine.cpu_quota.value_or(cores)),
                            static_cast<int>(machine.gpus.size()))
        .nodes.front();
}

bool is_this_host(node const& candidate) {
    for (auto const& name : {candidate.name, candidate.address}) {
        if (name.empty()) continue;
        if (name == "localhost" || name.starts_with("127.") || name == "::1") return true;
        if (is_ip_address(name) ? !interface_that_has(name).empty() : same_host(short_name(name), short_host_name())) return true;
    }
    return false;
}

namespace {

int count_threads(topology const& machine) {
    return static_cast<int>(machine.allowed().cpus.size());
}

std::string quota_note(topology const& machine) {
    if (!machine.cpu_quota) return "";
    return fmt::format("{}: a quota of this process' cgroup allows {} of {} hardware threads' time, so ranks are not bound",
                       machine.host, *machine.cpu_quota, count_threads(machine));
}

}  // namespace

placement_request with_share(placement_request wanted, allocation const& given, node const& one) {
    wanted.share.gpu_ids = one.gpu_ids;
    if (given.scheduler != scheduler_kind::pbs) return wanted;
    wanted.share.may_be_part = given.shares_nodes;
    // The node is also compared with what a site's file says about its nodes, which it allocates whole.
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

std::vector<gpu> gpus_to_sample(topology const& machine, std::vector<binding> const& ranks, bool only_of_ranks) {
    std::vector<gpu> chosen;
    for (auto const& one : machine.gpus) {
        bool const of_rank = std::ranges::any_of(ranks, [&](binding const& rank) { return rank.device == one; });
        if (one.vendor == gpu_vendor::nvidia && one.known_to_driver && !one.uuid.empty() && (of_rank || !only_of_ranks))
            chosen.push_back(one);
    }
    return chosen;
}

std::string share_note(topology const& machine, placement_request const& wanted) {
    auto const& share = wanted.share;
    if (share.gpus.value_or(0) > 0 && machine.gpus.empty())
        return fmt::format("{}: the job has {} there, and none is to be seen{}; see muster doctor", machine.host,
                           counted(*share.gpus, "GPU"), machine.gpu_note.empty() ? "" : fmt::format(" ({})", machine.gpu_note));
    if (!machine.gpus_in_vain.empty())
        return fmt::format("{}: {} changes nothing: there is no GPU here ({})", machine.host, machine.gpus_in_vain,
                           machine.gpu_note);
    std::string what;
    if (is_gpu_share_unclear(machine, wanted)) what = fmt::format("{} of the {} GPUs", *share.gpus, machine.gpus.size());
    if (is_core_share_unclear(machine, wanted))
        what += fmt::format("{}{} of the {} hardware threads", what.empty() ? "" : " and ", *share.cpus, count_threads(machine));
    if (what.empty()) return wanted.bind_to == bind_policy::share && wanted.cpu_map.empty() ? quota_note(machine) : "";
    return fmt::format(
        "{}: the job has {}, and nothing says which, so ranks are not bound to them and may meet another job's; ask for whole "
        "hosts (-l place=scatter:excl)",
        machine.host, what);
}

}  // namespace muster
