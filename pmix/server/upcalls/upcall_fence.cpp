// A fence with ranks of other servers. The library completes those of local ranks by itself.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "pmix/server/server_core.hpp"
#include "pmix/server/upcalls/upcalls.hpp"

namespace muster::pmix {
namespace {

/// The same at every server that takes part: "fence" and the ranks, or "fence *" for all.
std::string name_of_fence(std::vector<pmix_proc_t> const& procs) {
    std::set<pmix_rank_t> ranks;
    for (auto const& proc : procs) ranks.insert(proc.rank);
    std::string name = "fence";
    if (ranks.contains(PMIX_RANK_WILDCARD)) return name + " *";
    for (auto const rank : ranks) name += " " + std::to_string(rank);
    return name;
}

std::vector<int> nodes_with(job const& description, std::vector<pmix_proc_t> const& procs) {
    std::vector<int> found;
    for (std::size_t n = 0; n < description.nodes.size(); ++n) {
        auto const& ranks = description.nodes[n].ranks;
        auto const is_here = [&](pmix_proc_t const& proc) {
            return proc.rank == PMIX_RANK_WILDCARD ||
                   std::find(ranks.begin(), ranks.end(), static_cast<int>(proc.rank)) != ranks.end();
        };
        if (std::any_of(procs.begin(), procs.end(), is_here)) found.push_back(static_cast<int>(n));
    }
    return found;
}

}  // namespace

void answer_modex(server_core::pending_modex const& whom, pmix_status_t status, std::string const& data) {
    auto* bytes = data.empty() ? nullptr : static_cast<char*>(std::malloc(data.size()));
    if (bytes != nullptr) std::memcpy(bytes, data.data(), data.size());
    whom.answer(
        status, bytes, bytes == nullptr ? 0 : data.size(), whom.cookie, [](void* mine) { std::free(mine); }, bytes);
}

pmix_status_t upcall_fence(pmix_proc_t const procs[], size_t nprocs, pmix_info_t const[], size_t, char* data, size_t bytes,
                           pmix_modex_cbfunc_t answer, void* cookie) {
    auto* core = active_core();
    if (core == nullptr || answer == nullptr) return PMIX_ERR_NOT_AVAILABLE;
    // `data` is ours now.
    std::string given(data == nullptr ? "" : data, data == nullptr ? 0 : bytes);
    std::free(data);
    core->post([members = std::vector<pmix_proc_t>(procs, procs + nprocs), given = std::move(given), answer, cookie](
                   server_core& mine) {
        // What the local ranks gave is all that there is: hand it back.
        if (!mine.description.spans_nodes()) return answer_modex({answer, cookie}, PMIX_SUCCESS, given);
        auto const name = name_of_fence(members);
        mine.fences[name] = {answer, cookie};
        mine.mail.parts.push_back({name, nodes_with(mine.description, members), given});
    });
    return PMIX_SUCCESS;
}

}  // namespace muster::pmix
