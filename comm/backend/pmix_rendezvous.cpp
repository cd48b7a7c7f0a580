#include "comm/backend/pmix_rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>

#include "comm/backend/comm_error.hpp"
#include "comm/backend/processes/rank_processes.hpp"
#include "pmix/client/client.hpp"

namespace muster {

namespace {

/// PMIx wants a deadline: for "without end", a week.
constexpr duration endless{7.0 * 24 * 3600};

/// The process' client of PMIx, kept until it ends: a rank that left PMIx between two rendezvous would be taken for one that
/// ended.
struct kept_client {
    std::mutex lock;
    std::unique_ptr<pmix::client> client;
};
kept_client& the_client() {
    static kept_client only;
    return only;
}

void check_place(identity const& who, identity const& told) {
    if (told.rank == who.rank && told.world_size == who.world_size) return;
    throw error(errc::singleton,
                fmt::format("rank {} of {} on {}: the PMIx server calls this process rank {} of {}; start the program by `muster "
                            "run` or `srun --mpi=pmix`, and one communicator for all of its ranks",
                            who.rank, who.world_size, who.host, told.rank, told.world_size));
}

/// The same failure, with the ranks that did not come.
[[noreturn]] void throw_absent(identity const& who, error const& problem) {
    auto const missing = explain_absence(who, find_rank_processes(who));
    throw comm_error(problem.code(),
                     fmt::format("rank {} of {} on {}: the ranks did not meet: {}; {}", who.rank, who.world_size, who.host,
                                 problem.what(), missing.text),
                     missing.culprits);
}

}  // namespace

std::vector<std::vector<std::byte>> gather_by_pmix(identity const& who, std::string_view key, std::span<std::byte const> mine,
                                                   duration deadline, pmix_client_stays how) {
    std::vector<std::vector<std::byte>> all(static_cast<std::size_t>(who.world_size));
    if (who.world_size == 1) {
        all.front().assign(mine.begin(), mine.end());
        return all;
    }
    using clock = std::chrono::steady_clock;
    auto const end = clock::now() + std::chrono::duration_cast<clock::duration>(deadline.count() > 0 ? deadline : endless);
    auto const left = [&] { return std::max(duration(end - clock::now()), duration{0.001}); };
    try {
        auto& kept = the_client();
        std::scoped_lock const guard(kept.lock);
        std::unique_ptr<pmix::client> own;
        auto& used = how == pmix_client_stays::to_the_end || kept.client ? kept.client : own;
        if (!used) used = std::make_unique<pmix::client>(left());
        pmix::client& server = *used;
        check_place(who, server.who());
        server.put(key, mine);
        server.commit(left());
        server.fence(left());
        for (int rank = 0; rank < who.world_size; ++rank)
            all[static_cast<std::size_t>(rank)] = server.get_bytes(rank, key, left());
    } catch (error const& problem) {
        if (problem.code() != errc::timeout && problem.code() != errc::peer_failed) throw;
        throw_absent(who, problem);
    }
    return all;
}

}  // namespace muster
