#include "launch/run/kept_states.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/command/print_note.hpp"
#include "base/error.hpp"
#include "launch/keep/kept_store.hpp"
#include "launch/keep/state_arrangement.hpp"
#include "launch/remote/host_ranks.hpp"
#include "launch/run/prepare_run.hpp"

namespace muster {

namespace {

/// Places states that are in this node's memory.
kept_places settle_here(run_plan const& run, int fd) {
    kept_store store(unique_fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)));
    auto made = arrange_alone(store, static_cast<std::size_t>(run.map.world_size()));
    return {.fd = fd, .parts = std::move(made.parts), .free_part = made.free_part};
}

}  // namespace

kept_places place_kept_states(run_plan const& run, allocation const& everywhere, bool elsewhere, state_holder& holder) {
    bool const first = run.life.is_first(), several = everywhere.nodes.size() > 1;
    if (holder.leader() == 0 && !several && elsewhere)
        throw error(errc::unavailable,
                    fmt::format("--keep-state: the ranks' only node, {}, is not that of muster run, whose memory "
                                "holds what they commit; run muster there, or leave the option out",
                                everywhere.nodes.front().name));
    if (holder.leader() == 0 && !several) {
        if (run.options.keep_at_neighbour && first && !run.options.quiet)
            print_note("--keep-state node,neighbour: this run has one node, so no other has a copy of what its ranks commit");
        return first ? kept_places{.fd = holder.memory()} : settle_here(run, holder.memory());
    }
    if (holder.leader() == 0 && run.options.discovery.given())
        throw error(errc::unavailable,
                    "--keep-state over several nodes is for hosts that are known from the start, and --host-discovery-script "
                    "names them as they come; leave one of the two out");
    auto const start_keepers = [&] {
        run_plan all = run;
        all.given = everywhere;
        holder.start_keepers(all);
    };
    if (holder.leader() == 0) start_keepers();
    wire::place_states where;
    std::vector<std::vector<int>> ranks(run.given.nodes.size());
    int rank = 0;
    for (auto const& place : run.map.places()) ranks[static_cast<std::size_t>(place.node)].push_back(rank++);
    where.ranks = pack_ranks(ranks);
    where.world_size = rank;
    for (auto const& one : run.given.nodes) where.hosts.push_back(one.name);
    where.session_dir = run.session_dir;
    auto const place = [&] {
        auto const& limit = run.options.timeout;
        return holder.place(where, limit ? std::optional(*limit - run.life.age()) : std::nullopt);
    };
    wire::states_placed placed;
    try {
        placed = place();
    } catch (error const& e) {
        if (first || e.code() != errc::unavailable) throw;
        if (!run.options.quiet)
            print_note(
                fmt::format("{}; what ranks had committed is lost, and they begin from what they find on disk; other keepers "
                            "hold what they commit from now on",
                            e.what()));
        start_keepers();
        placed = place();
    }
    if (!run.options.quiet)
        for (auto const& note : placed.notes) print_note("--keep-state: " + note);
    if (run.options.verbose && !run.options.quiet && placed.step != 0)
        fmt::print(stderr, "muster: --keep-state: commit {} is whole for {}, on the nodes where they will run\n", placed.step,
                   placed.world_size == rank ? "all ranks" : fmt::format("the {} ranks that made it", placed.world_size));
    return {.files = std::move(placed.files), .parts = std::move(placed.parts), .free_part = placed.free_part};
}

}  // namespace muster
