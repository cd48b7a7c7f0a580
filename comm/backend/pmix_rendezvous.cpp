#include "comm/backend/pmix_rendezvous.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "base/throw_error.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/processes/rank_processes.hpp"
#include "comm/backend/speaker.hpp"
#include "pmix/client/client.hpp"

namespace muster {

namespace {

/// PMIx wants a deadline: a week stands for "without end".
constexpr duration endless{7.0 * 24 * 3600};

/// The process's client of PMIx, kept until the process ends.
struct kept_client {
    std::mutex lock;
    std::unique_ptr<pmix::client> client;
    bool has_left = false;  ///< an earlier rendezvous left PMIx
};
kept_client& the_client() {
    static kept_client only;
    return only;
}

void check_place(identity const& who, identity const& told) {
    if (told.rank == who.rank && told.world_size == who.world_size) return;
    throw_error(errc::singleton,
                "{}: the PMIx server calls this process rank {} of {}; start the program by `muster run` or `srun --mpi=pmix`, "
                "and one communicator for all of its ranks",
                speaker(who), told.rank, told.world_size);
}

/// Throws the same failure, naming the ranks that did not come.
[[noreturn]] void throw_absent(identity const& who, error const& problem) {
    auto const missing = explain_absence(who, find_rank_processes(who));
    throw comm_error(problem.code(),
                     fmt::format("{}: the ranks did not meet: {}; {}", speaker(who), problem.what(), missing.text),
                     missing.culprits);
}

/// Waits for all ranks. A server may take ranks that left PMIx after an earlier rendezvous (`came_again`) for ended ones: it gives up the fence when it learns
/// only then that their old connection is closed (OpenPMIx 4.2, PMIX_ERR_PARTIAL_SUCCESS). The ranks that wait in it then meet in another one. Throws as
/// client::fence(); errc::peer_failed only if a rank of this node has no process, or after the fourth such failure.
void fence_all(pmix::client& server, identity const& who, bool came_again, std::function<duration()> const& left) {
    for (int tries_left = came_again ? 3 : 0;; --tries_left) {
        try {
            return server.fence(left());
        } catch (error const& problem) {
            if (problem.code() != errc::peer_failed || tries_left == 0 ||
                !explain_absence(who, find_rank_processes(who)).culprits.empty())
                throw;
            spdlog::debug("{}: {}; all ranks have a process: once more", speaker(who), problem.what());
        }
    }
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
        bool const came_again = std::exchange(kept.has_left, kept.has_left || own);
        check_place(who, server.who());
        server.put(key, mine);
        server.commit(left());
        fence_all(server, who, came_again, left);
        for (int rank = 0; rank < who.world_size; ++rank)
            all[static_cast<std::size_t>(rank)] = server.get_bytes(rank, key, left());
    } catch (error const& problem) {
        if (problem.code() != errc::timeout && problem.code() != errc::peer_failed) throw;
        throw_absent(who, problem);
    }
    return all;
}

}  // namespace muster
