#include "comm/backend/world_record.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "comm/backend/comm_error.hpp"
#include "comm/backend/speaker.hpp"

namespace muster {

namespace {

std::uint64_t fnv1a(std::string_view text) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (char const c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

[[noreturn]] void throw_wrong_size(identity const& who, std::size_t met, world_record const& culprit) {
    std::string const where = culprit.world_size == who.world_size
                                  ? std::string{}
                                  : fmt::format(" (rank {} on {} counts {})", culprit.rank, culprit.host, culprit.world_size);
    throw comm_error(
        errc::singleton,
        fmt::format("{}: MPI came up with a world of {} rank(s), but {} says that there are {}{}. The program's MPI has no "
                    "connection to the launcher: check that it is linked against the MPI of this machine, and start it with "
                    "`muster run` or with the launcher of that MPI (srun --mpi=pmix, mpirun, mpiexec)",
                    speaker(who), met, to_string(who.from), who.world_size, where));
}

}  // namespace

world_record describe_world(identity const& who, comm_options const& options) noexcept {
    world_record record;
    record.rank = who.rank;
    record.world_size = who.world_size;
    record.job = fnv1a(who.nspace);
    record.direct_ranks = options.direct_ranks;
    record.process = this_process();
    std::size_t const length = std::min(who.host.size(), sizeof record.host - 1);
    std::memcpy(record.host, who.host.data(), length);
    static_assert(sizeof record.processors == sizeof(cpu_set_t));
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) std::memcpy(record.processors.data(), &allowed, sizeof allowed);
    return record;
}

bool is_crowded(std::span<world_record const> records, std::string_view host) noexcept {
    std::array<std::uint64_t, 16> all{};
    int ranks = 0;
    for (auto const& record : records) {
        if (record.host != host.substr(0, sizeof record.host - 1)) continue;
        ++ranks;
        for (std::size_t i = 0; i < all.size(); ++i) all[i] |= record.processors[i];
    }
    int processors = 0;
    for (auto const bits : all) processors += std::popcount(bits);
    return processors != 0 && ranks > processors;
}

std::vector<process_name> processes_of(std::span<world_record const> records) {
    std::vector<process_name> processes;
    for (auto const& record : records) processes.push_back(record.process);
    return processes;
}

std::vector<std::string> hosts_of(std::span<world_record const> records) {
    std::vector<std::string> hosts;
    for (auto const& record : records) hosts.emplace_back(record.host);
    return hosts;
}

void check_world(std::span<world_record const> records, identity const& who) {
    for (auto const& record : records)
        if (static_cast<std::size_t>(record.world_size) != records.size()) throw_wrong_size(who, records.size(), record);
    std::vector<world_record const*> by_rank(records.size(), nullptr);
    for (auto const& record : records) {
        if (record.rank < 0 || static_cast<std::size_t>(record.rank) >= records.size())
            throw comm_error(errc::peer_failed,
                             fmt::format("{}: a process on {} calls itself rank {}", speaker(who), record.host, record.rank));
        auto& place = by_rank[static_cast<std::size_t>(record.rank)];
        if (place != nullptr)
            throw comm_error(
                errc::peer_failed,
                fmt::format("{}: two processes, on {} and on {}, call themselves rank {}; start all ranks by one command",
                            speaker(who), place->host, record.host, record.rank));
        place = &record;
    }
    world_record const& first = *by_rank.front();
    for (auto const* record : by_rank) {
        if (record->job != first.job)
            throw comm_error(errc::peer_failed, fmt::format("{}: rank {} on {} belongs to another job step than rank 0 on {}",
                                                            speaker(who), record->rank, record->host, first.host));
        if (record->direct_ranks != first.direct_ranks)
            throw comm_error(
                errc::peer_failed,
                fmt::format("{}: direct_ranks is {} on rank {} ({}) and {} on rank 0 ({}); give all the same", speaker(who),
                            record->direct_ranks, record->rank, record->host, first.direct_ranks, first.host));
    }
}

}  // namespace muster
