#include "comm/nccl/nccl_mpi_backend.hpp"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/hierarchical/node_reduction.hpp"
#include "comm/mpi/mpi_backend.hpp"
#include "comm/nccl/chunked_allreduce_backend.hpp"
#include "comm/nccl/host_staged_backend.hpp"
#include "comm/nccl/nccl_backend.hpp"
#include "comm/nccl/nccl_rank_record.hpp"

namespace muster {

namespace {

/// Why no rank of this world can be served, the same on all.
std::optional<std::string> not_for(identity const& who, comm_options const& options) {
    if (options.backend != "nccl_mpi") return "it is taken by name only, since nccl goes across the nodes by itself";
    if (who.node_count <= 1) return "all ranks are on one node, which nccl serves";
    if (auto const refusal = mpi_unavailable(who, options)) return "it needs mpi: " + *refusal;
    return std::nullopt;
}

/// What each rank gives, in the order of the ranks.
std::vector<std::vector<std::byte>> gather_over(collective_backend& world, std::span<std::byte const> mine, std::size_t size,
                                                duration deadline) {
    std::vector<std::byte> own(mine.begin(), mine.end()), all(mine.size() * size);
    auto const bytes = [](std::vector<std::byte>& of) { return tensor_view{of.data(), of.size(), dtype::u8, memory_kind::host}; };
    run_now(world, {collective::kind::allgather, bytes(own), bytes(all)}, deadline, "rendezvous before NCCL");
    return split_by_rank(all, size);
}

/// The faults of all ranks in one error, the same on all; `fault` is this one's.
std::optional<comm_error> agree_on_faults(collective_backend& world, identity const& who, comm_options const& options,
                                          std::optional<error> const& fault) {
    auto record = nccl::describe_rank(who, options, 0, "");
    if (fault) nccl::set_fault(record, fault->code(), fault->what());
    auto const size = static_cast<std::size_t>(who.world_size);
    auto const blobs = gather_over(world, std::as_bytes(std::span(&record, 1)), size, options.deadline);
    try {
        std::vector<nccl::rank_record> records;
        for (auto const& blob : blobs) records.push_back(nccl::read_record(blob, static_cast<int>(records.size()), who));
        nccl::check_records(records, who);
    } catch (comm_error const& problem) {
        return problem;
    }
    return std::nullopt;
}

/// Runs `body`. What it throws on any rank is thrown on all, after MPI, of which all are, has been left in order.
template <typename Body>
void run_on_all(std::unique_ptr<collective_backend>& world, identity const& who, comm_options const& options,
                nccl::chunked_allreduce_parts& parts, Body&& body) {
    std::optional<error> fault;
    try {
        body();
    } catch (error const& problem) {
        fault = problem;
    }
    auto const agreed = agree_on_faults(*world, who, options, fault);
    if (!agreed) return;
    parts.node.reset();  // not by an exception that unwinds: that would abort what others have on NCCL
    world.reset();
    throw *agreed;
}

/// NCCL's communicator of this node's ranks; all ranks of the world gather what it needs.
std::unique_ptr<collective_backend> make_node(collective_backend& world, identity const& who, node_groups const& groups,
                                              comm_options const& options) {
    auto const gather = [&](identity const&, std::span<std::byte const> mine, duration deadline) {
        auto const all = gather_over(world, mine, static_cast<std::size_t>(who.world_size), deadline);
        std::vector<std::vector<std::byte>> local;
        for (int const rank : groups.local) local.push_back(all[static_cast<std::size_t>(rank)]);
        return local;
    };
    return nccl::make_backend(identity_on_node(who, groups, "nccl"), options,
                              {&nccl::find_library(), &cuda::find_driver(), gather});
}

}  // namespace

std::optional<std::string> nccl_mpi_unavailable(identity const& who, comm_options const& options) {
    if (auto const refusal = not_for(who, options)) return refusal;
    return nccl_unavailable(who, options);
}

std::unique_ptr<collective_backend> make_nccl_mpi_backend(identity const& who, comm_options const& options) {
    if (auto const refusal = not_for(who, options)) throw error(errc::unavailable, *refusal);
    auto world = make_mpi_backend(who, options);
    comm_options own = options;
    nccl::chunked_allreduce_parts parts;
    run_on_all(world, who, options, parts, [&] {
        if (auto const lacking = nccl_unavailable(who, options)) throw error(errc::unavailable, *lacking);
        own.device = cuda::choose_device(cuda::find_driver(), options.device, who.local_rank);
        parts.on = cuda::device::open(cuda::find_driver(), own.device);
    });
    parts.groups = group_by_node(gather_places(*world, who, options.deadline), who.rank);
    if (parts.groups.refusal.empty()) {
        run_on_all(world, who, options, parts, [&] { parts.node = make_node(*world, who, parts.groups, own); });
        parts.across = world->subset(parts.groups.across);
        spdlog::debug(
            "communicator: nccl_mpi: {} nodes of {} ranks, from {} on in chunks of {}; within them by NCCL, across by mpi",
            parts.groups.across.size(), parts.groups.local.size(), format_bytes(options.hierarchical_bytes),
            format_bytes(options.node_chunk_bytes));
    } else {
        spdlog::info("communicator: nccl_mpi goes flat over mpi, through host memory: {}", parts.groups.refusal);
    }
    parts.staged = nccl::make_host_staged_backend(std::move(world), who.rank, parts.on);
    return nccl::make_chunked_allreduce_backend(std::move(parts), options.hierarchical_bytes, options.node_chunk_bytes);
}

}  // namespace muster
