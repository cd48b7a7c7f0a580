// links: muster::jobs
// iterations: 20000
// Any bytes as what scontrol says of a job's end and of nodes, and sinfo of a cluster: facts that hold together, and never an error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "launch/engine/engines.hpp"
#include "launch/scheduler/slurm/slurm_job.hpp"
#include "launch/site_tools/cluster_facts.hpp"
#include "launch/watch/job_end.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    auto const why = muster::parse_job_end(text);
    if (text.find("JobState=") == std::string_view::npos && why != muster::job_end::unknown) __builtin_trap();
    for (auto const& name : muster::parse_down_nodes(text))
        if (name.empty() || text.find(name) == std::string_view::npos) __builtin_trap();
    for (auto const& name : muster::parse_failed_nodes(text, "2"))
        if (name.empty() || text.find(name) == std::string_view::npos) __builtin_trap();
    auto const facts = muster::read_slurm_facts(text, text);
    for (auto const& shape : facts.shapes)
        if (shape.count < 0 || shape.gpus.value_or(0) < 0 || shape.cores.value_or(1) < 1 || shape.cpus.value_or(1) < 1)
            __builtin_trap();
    for (auto const& queue : facts.queues)
        if (queue.name.empty() || queue.max_nodes.value_or(1) < 1) __builtin_trap();
    for (auto const& plugin : muster::parse_mpi_list(text))
        if (plugin.empty()) __builtin_trap();
    muster::binds_tasks(text);
    muster::munge_socket(text);
    return 0;
}
