#include "comm/nccl/nccl_backend.hpp"

#include <fmt/format.h>

#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/late_ranks.hpp"
#include "comm/backend/pmix_rendezvous.hpp"
#include "comm/nccl/nccl_collectives.hpp"
#include "comm/nccl/nccl_rank_record.hpp"

namespace muster {

namespace nccl {

namespace {

/// Does what may fail on this rank alone, before the rendezvous; the record tells all ranks of the failure.
void prepare(rank_record& mine, identity const& who, comm_options const& options, parts const& from, workspace& space) try {
    if (auto const why = unavailable(from)) throw error(errc::unavailable, *why);
    auto const on = cuda::device::open(*from.driver, cuda::choose_device(*from.driver, options.device, who.local_rank));
    space = make_workspace(on);
    mine = describe_rank(who, options, from.nccl->version, on->uuid());
    if (who.rank != 0) return;
    library const& with = *from.nccl->use;
    if (int const code = with.get_unique_id(&mine.id); code != success)
        throw nccl_error("ncclGetUniqueId", code, with.error_string(code));
} catch (error const& problem) {
    mine = describe_rank(who, options, from.nccl->version, "");
    set_fault(mine, problem.code(), problem.what());
}

/// Every rank's bytes. Where the rendezvous fails, a rank that cannot take part reports that first.
std::vector<std::vector<std::byte>> gather(rank_record const& mine, identity const& who, comm_options const& options,
                                           parts const& from) try {
    return from.gather(who, std::as_bytes(std::span(&mine, 1)), options.deadline);
} catch (error const& problem) {
    if (mine.fault[0] == '\0') throw;
    throw error(static_cast<errc>(mine.fault_code),
                fmt::format("nccl: {} (and the other ranks did not hear of it: {})", mine.fault, problem.what()));
}

/// All ranks' records, checked; in the order of the ranks.
std::vector<rank_record> rendezvous(rank_record const& mine, identity const& who, comm_options const& options,
                                    parts const& from) {
    auto const blobs = gather(mine, who, options, from);
    std::vector<rank_record> records;
    for (std::size_t rank = 0; rank < blobs.size(); ++rank)
        records.push_back(read_record(blobs[rank], static_cast<int>(rank), who));
    check_records(records, who);
    return records;
}

nccl_comm make_comm(identity const& who, comm_options const& options, parts const& from, std::string const& speaker,
                    std::shared_ptr<cuda::device const> const& on, std::vector<rank_record> const& records) {
    library const& with = *from.nccl->use;
    try {
        return nccl_comm::create(runtime::acquire(with), with, on, records.front().id, who.rank, who.world_size, speaker,
                                 options.deadline);
    } catch (nccl_error const& problem) {
        // NCCL's own message for ranks that share a GPU does not name the cause.
        auto const shared = shared_gpus(records);
        if (shared.empty()) throw;
        throw comm_error(errc::placement, fmt::format("{}: {} ({})", speaker, shared, problem.what()));
    } catch (comm_error const& problem) {
        if (problem.code() != errc::timeout) throw;
        std::vector<process_name> processes;
        std::vector<std::string> hosts;
        for (auto const& record : records) {
            processes.push_back(record.process);
            hosts.emplace_back(record.place.host);
        }
        auto const lost = lost_ranks(processes, who.rank);
        std::string const late = lost.empty() ? "" : "; waiting for " + describe_late(lost, hosts);
        throw comm_error(errc::timeout, problem.what() + late, ranks_of(lost));
    }
}

}  // namespace

std::optional<std::string> unavailable(parts const& from) {
    if (from.nccl->use == nullptr) return from.nccl->why_not;
    if (from.driver->use == nullptr) return from.driver->why_not;
    return std::nullopt;
}

std::unique_ptr<collective_backend> make_backend(identity const& who, comm_options const& options, parts const& from) {
    rank_record mine;
    workspace space;
    prepare(mine, who, options, from, space);
    auto const records = rendezvous(mine, who, options, from);
    auto const on = space.on;
    world ranks;
    ranks.rank = who.rank;
    ranks.size = who.world_size;
    ranks.speaker = fmt::format("rank {} of {} on {}", who.rank, who.world_size, who.host);
    ranks.deadline = options.deadline;
    std::vector<world_record> places;
    for (auto const& record : records) {
        ranks.hosts.emplace_back(record.place.host);
        ranks.processes.push_back(record.process);
        places.push_back(record.place);
    }
    ranks.crowded = is_crowded(places, records[static_cast<std::size_t>(who.rank)].place.host);
    nccl_comm comm = make_comm(who, options, from, ranks.speaker, on, records);
    spdlog::debug("{}: NCCL {} on {} ({}){}", ranks.speaker, version_text(from.nccl->version), on->name(), on->uuid(),
                  who.node_count > 1 ? ", which goes within the nodes and across them by itself" : "");
    return make_collectives(std::move(ranks), std::move(space), std::move(comm));
}

}  // namespace nccl

std::optional<std::string> nccl_unavailable(identity const&, comm_options const&) {
    return nccl::unavailable({&nccl::find_library(), &cuda::find_driver(), {}});
}

std::unique_ptr<collective_backend> make_nccl_backend(identity const& who, comm_options const& options) {
    std::string const key = fmt::format("muster.nccl.{}", nccl::next_epoch());
    auto const gather = [&](identity const& rank, std::span<std::byte const> mine, duration deadline) {
        return gather_by_pmix(rank, key, mine, deadline);
    };
    return nccl::make_backend(who, options, {&nccl::find_library(), &cuda::find_driver(), gather});
}

std::unique_ptr<collective_backend> make_nccl_backend_over(gather_function const& gather, identity const& who,
                                                           comm_options const& options) {
    return nccl::make_backend(who, options, {&nccl::find_library(), &cuda::find_driver(), gather});
}

}  // namespace muster
