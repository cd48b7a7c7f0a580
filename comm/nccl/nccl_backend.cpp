#include "comm/nccl/nccl_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/late_ranks.hpp"
#include "comm/backend/pmix_rendezvous.hpp"
#include "comm/backend/speaker.hpp"
#include "comm/nccl/nccl_collectives.hpp"

namespace muster::nccl {

static_assert(std::is_trivially_copyable_v<rank_record>);

rank_record describe_rank(identity const& who, comm_options const& options, int nccl_version, std::string_view gpu) noexcept {
    rank_record record;
    record.place = describe_world(who, options);
    record.nccl_version = nccl_version;
    std::memcpy(record.gpu, gpu.data(), std::min(gpu.size(), sizeof record.gpu - 1));
    return record;
}

void set_fault(rank_record& record, errc code, std::string_view why) noexcept {
    record.fault_code = static_cast<int>(code);
    std::memset(record.fault, 0, sizeof record.fault);
    std::memcpy(record.fault, why.data(), std::min(why.size(), sizeof record.fault - 1));
}

rank_record read_record(std::span<std::byte const> bytes, int rank, identity const& who) {
    if (bytes.size() != sizeof(rank_record))
        throw comm_error(
            errc::peer_failed,
            fmt::format("{}: rank {} sent {} bytes about itself instead of {}; start all ranks with the same build of muster",
                        speaker(who), rank, bytes.size(), sizeof(rank_record)),
            {rank});
    rank_record record;
    std::memcpy(&record, bytes.data(), sizeof record);
    record.place.host[sizeof record.place.host - 1] = '\0';
    record.gpu[sizeof record.gpu - 1] = '\0';
    record.fault[sizeof record.fault - 1] = '\0';
    return record;
}

namespace {

std::vector<world_record> places_of(std::span<rank_record const> records) {
    std::vector<world_record> places;
    for (auto const& record : records) places.push_back(record.place);
    return places;
}

void check_faults(std::span<rank_record const> records, identity const& who) {
    std::vector<std::string> whys, faults;
    std::vector<std::vector<std::string>> whose;  // of each reason
    std::vector<int> culprits;
    auto code = errc::peer_failed;
    for (auto const& record : records) {
        if (record.fault[0] == '\0') continue;
        if (whys.empty()) code = static_cast<errc>(record.fault_code);
        auto const known = static_cast<std::size_t>(std::find(whys.begin(), whys.end(), record.fault) - whys.begin());
        if (known == whys.size()) {
            whys.emplace_back(record.fault);
            whose.emplace_back();
        }
        whose[known].push_back(fmt::format("rank {} on {}", record.place.rank, record.place.host));
        culprits.push_back(record.place.rank);
    }
    if (whys.empty()) return;
    for (std::size_t i = 0; i < whys.size(); ++i) faults.push_back(fmt::format("{}: {}", join(whose[i], ", "), whys[i]));
    throw comm_error(code, fmt::format("{}: a communicator on NCCL cannot be made: {}", speaker(who), join(faults, "; ")),
                     culprits);
}

}  // namespace

void check_records(std::span<rank_record const> records, identity const& who) {
    check_world(places_of(records), who);
    check_faults(records, who);
    for (auto const& record : records)
        if (record.nccl_version != records.front().nccl_version)
            throw comm_error(
                errc::peer_failed,
                fmt::format(
                    "{}: rank {} on {} has NCCL {}, rank {} on {} has {}; give all ranks the same libnccl.so.2 (LD_LIBRARY_PATH)",
                    speaker(who), record.place.rank, record.place.host, version_text(record.nccl_version),
                    records.front().place.rank, records.front().place.host, version_text(records.front().nccl_version)));
}

std::string shared_gpus(std::span<rank_record const> records) {
    for (std::size_t i = 0; i < records.size(); ++i)
        for (std::size_t k = i + 1; k < records.size(); ++k)
            if (std::strcmp(records[i].gpu, records[k].gpu) == 0 &&
                std::strcmp(records[i].place.host, records[k].place.host) == 0)
                return fmt::format(
                    "ranks {} and {} on {} share {}, which NCCL refuses: start one rank per GPU. For tests only, it takes them "
                    "for "
                    "ranks of different hosts if each has another NCCL_HOSTID (with NCCL_NET=Socket), and from NCCL 2.30 on "
                    "there is "
                    "NCCL_MULTI_RANK_GPU_ENABLE=1",
                    records[i].place.rank, records[k].place.rank, records[i].place.host, records[i].gpu);
    return {};
}

}  // namespace muster::nccl

namespace muster {

namespace nccl {

namespace {

/// Does what may fail only on this rank, before the rendezvous; the record tells all ranks of the failure.
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

/// Returns every rank's bytes. If the rendezvous fails, a rank that cannot take part reports that first.
std::vector<std::vector<std::byte>> gather(rank_record const& mine, identity const& who, comm_options const& options,
                                           parts const& from) try {
    return from.gather(who, std::as_bytes(std::span(&mine, 1)), options.deadline);
} catch (error const& problem) {
    if (mine.fault[0] == '\0') throw;
    throw_error(static_cast<errc>(mine.fault_code), "nccl: {} (and the other ranks did not hear of it: {})", mine.fault,
                problem.what());
}

/// Returns all ranks' records, checked, by rank.
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
        auto const places = places_of(records);
        auto const lost = lost_ranks(processes_of(places), who.rank);
        std::string const late = lost.empty() ? "" : "; waiting for " + describe_late(lost, hosts_of(places));
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
    auto const places = places_of(records);
    world ranks;
    ranks.rank = who.rank;
    ranks.size = who.world_size;
    ranks.crowded = is_crowded(places, places[static_cast<std::size_t>(who.rank)].host);
    ranks.speaker = speaker(who);
    ranks.deadline = options.deadline;
    ranks.hosts = hosts_of(places);
    ranks.processes = processes_of(places);
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
