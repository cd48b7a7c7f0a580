#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "comm/backend/deadlines.hpp"
#include "comm/backend/late_ranks.hpp"
#include "comm/backend/processes/rank_processes.hpp"
#include "comm/mpi/mpi_runtime.hpp"

namespace muster::detail {

namespace {

constexpr int group_tag = 1;

unique_comm own(MPI_Comm comm) {
    unique_comm owner(comm);
    check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    return owner;
}

struct mpi_group_traits {
    using type = MPI_Group;
    static type null() noexcept { return MPI_GROUP_NULL; }
    static void close(type group) noexcept { MPI_Group_free(&group); }
};
using unique_group = unique_handle<mpi_group_traits>;

unique_comm make_part(MPI_Comm whole, std::vector<int> const& ranks, int tag) {
    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    check(MPI_Comm_group(whole, &all), "MPI_Comm_group");
    unique_group const of_all(all);
    check(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some), "MPI_Group_incl");
    unique_group const of_some(some);
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_create_group(whole, some, tag, &part), "MPI_Comm_create_group");
    return own(part);
}

/// Tells apart groups of the same ranks that are made at once: other than group_tag, and no larger than every MPI allows.
int tag_of(std::string const& name) {
    return group_tag + 1 + static_cast<int>(std::hash<std::string>{}(name) % 30'000);
}

/// Of these ranks of MPI's world only, which must number its ranks as the launcher does.
mpi_world rendezvous_of_members(identity const& who, comm_options const& options) {
    int size = 0, own_rank = 0;
    check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
    check(MPI_Comm_rank(MPI_COMM_WORLD, &own_rank), "MPI_Comm_rank");
    int const expected = options.members.at(static_cast<std::size_t>(who.rank));
    int const largest = *std::max_element(options.members.begin(), options.members.end());
    if (own_rank != expected || largest >= size)
        throw comm_error(
            errc::unavailable,
            fmt::format("communicator of {} ranks (rank {} on {}, which is rank {} of the job step): MPI calls it rank "
                        "{} of {}; start all ranks by one command, with the MPI that muster was built with",
                        who.world_size, who.rank, who.host, expected, own_rank, size));
    mpi_world world{make_part(MPI_COMM_WORLD, options.members, tag_of(who.nspace)), {}, false};
    world_record const mine = describe_world(who, options);
    world.ranks.resize(options.members.size());
    check(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, world.ranks.data(), sizeof mine, MPI_BYTE, world.comm.get()),
          "MPI_Allgather");
    check_world(world.ranks, who);
    world.crowded = is_crowded(world.ranks, mine.host);
    return world;
}

mpi_world rendezvous_now(identity const& who, comm_options const& options) {
    int size = 0;
    check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
    MPI_Comm copy = MPI_COMM_NULL;
    check(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
    mpi_world world{own(copy), {}, false};
    world_record const mine = describe_world(who, options);
    std::vector<world_record> records(static_cast<std::size_t>(size));
    check(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, records.data(), sizeof mine, MPI_BYTE, world.comm.get()), "MPI_Allgather");
    check_world(records, who);
    world.crowded = is_crowded(records, mine.host);
    bool reordered = false;
    world.ranks.resize(records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
        reordered = reordered || static_cast<std::size_t>(records[i].rank) != i;
        world.ranks[static_cast<std::size_t>(records[i].rank)] = records[i];
    }
    if (reordered) {
        check(MPI_Comm_split(world.comm.get(), 0, who.rank, &copy), "MPI_Comm_split");
        world.comm = own(copy);
    }
    return world;
}

}  // namespace

mpi_world rendezvous(mpi_runtime& runtime, identity const& who, comm_options const& options) {
    auto const world = std::make_shared<mpi_world>();
    duration const deadline = runtime.bound(options.deadline);
    auto const meet = options.members.empty() ? rendezvous_now : rendezvous_of_members;
    if (!call_with_deadline(deadline, [world, who, options, meet] { *world = meet(who, options); })) {
        runtime.leave_unfinalised();
        absence const why = explain_absence(who, with_the_gone(runtime.seen(), find_rank_processes(who)));
        throw comm_error(
            errc::timeout,
            fmt::format("communicator (rank {} of {} on {}): timed out, the ranks did not meet within {}: {}. Look at the other "
                        "ranks, or give a longer deadline (MUSTER_COMM_DEADLINE)",
                        who.rank, who.world_size, who.host, format_duration(deadline), why.text),
            why.culprits);
    }
    return std::move(*world);
}

mpi_world rendezvous_of_some(mpi_runtime& runtime, mpi_world const& whole, std::span<int const> ranks, int own_rank,
                             comm_options const& options) {
    auto const part = std::make_shared<mpi_world>();
    std::vector<int> const list(ranks.begin(), ranks.end());
    for (int const rank : list) part->ranks.push_back(whole.ranks[static_cast<std::size_t>(rank)]);
    part->crowded = whole.crowded;
    auto const place = static_cast<int>(std::find(list.begin(), list.end(), own_rank) - list.begin());
    auto const meet = [part, list, place, options, from = whole.comm.get()] { part->comm = make_part(from, list, group_tag); };
    if (!call_with_deadline(runtime.bound(options.deadline), meet)) {
        runtime.leave_unfinalised();
        auto const lost = lost_ranks(processes_of(whole.ranks), own_rank);
        std::string const why = lost.empty() ? "nothing is known of what keeps the others"
                                             : "waiting for " + describe_late(lost, hosts_of(whole.ranks));
        throw comm_error(
            errc::timeout,
            fmt::format("process set of {} ranks (rank {} of {} on {}): timed out, its ranks did not meet within {}: {}",
                        ranks.size(), own_rank, whole.ranks.size(), whole.ranks[static_cast<std::size_t>(own_rank)].host,
                        format_duration(options.deadline), why),
            ranks_of(lost));
    }
    return std::move(*part);
}

}  // namespace muster::detail
