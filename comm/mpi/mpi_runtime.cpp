#include <fmt/format.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "comm/backend/deadlines.hpp"
#include "comm/backend/late_ranks.hpp"
#include "comm/backend/processes/rank_processes.hpp"
#include "comm/backend/speaker.hpp"
#include "comm/mpi/mpi_call.hpp"
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

/// Returns a tag that distinguishes groups of the same ranks made at once. It differs from group_tag, and every MPI allows it.
int tag_of(std::string const& name) {
    return group_tag + 1 + static_cast<int>(std::hash<std::string>{}(name) % 30'000);
}

/// Makes the world of these ranks only. MPI must number its ranks as the launcher does.
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
        throw comm_error(errc::timeout,
                         fmt::format("communicator ({}): timed out, the ranks did not meet within {}: {}. Look at the other "
                                     "ranks, or give a longer deadline (MUSTER_COMM_DEADLINE)",
                                     speaker(who), format_duration(deadline), why.text),
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

namespace {

constexpr duration between_checks{0.2};

/// At this part of the deadline the other ranks' processes are read for the first time, while those that wait too still live.
constexpr double before_the_end = 0.8;

/// An initialisation that never came back still runs, and no second one is possible.
std::atomic<bool> stuck_in_init = false;

char const* level_name(int level) {
    switch (level) {
        case MPI_THREAD_SINGLE: return "MPI_THREAD_SINGLE";
        case MPI_THREAD_FUNNELED: return "MPI_THREAD_FUNNELED";
        case MPI_THREAD_SERIALIZED: return "MPI_THREAD_SERIALIZED";
        default: return "MPI_THREAD_MULTIPLE";
    }
}

int level_wanted(bool several_threads) {
    return several_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
}

[[noreturn]] void throw_stuck(identity const& who, duration deadline, std::vector<seen_process> const& first,
                              std::vector<seen_process> const& before) {
    stuck_in_init = true;
    absence const why = explain_absence(who, with_the_gone(first, before), with_the_gone(first, find_rank_processes(who)));
    throw comm_error(errc::timeout,
                     fmt::format("communicator ({}): timed out, MPI did not come up within {}: {}. Look at the other ranks, or "
                                 "give a longer deadline (MUSTER_COMM_DEADLINE)",
                                 speaker(who), format_duration(deadline), why.text),
                     why.culprits);
}

/// Returns the level that MPI gave. `seen` gets the ranks of this node as they were before.
int initialise(identity const& who, comm_options const& options, std::vector<seen_process>& seen) {
    auto const provided = std::make_shared<int>(MPI_THREAD_SINGLE);
    auto const initialise_now = [provided, wanted = level_wanted(options.several_threads)] {
        check(MPI_Init_thread(nullptr, nullptr, wanted, provided.get()), "MPI_Init_thread");
    };
    // A single rank waits for nobody, so the caller stays MPI's main thread.
    if (who.world_size == 1 || options.deadline.count() <= 0) {
        initialise_now();
        return *provided;
    }
    // The list shows later which ranks of several nodes have ended. On one node, ranks without a process have.
    if (who.node_count > 1) seen = find_rank_processes(who);
    call_on_thread call(initialise_now);
    if (call.wait(options.deadline * before_the_end)) return *provided;
    auto const before = find_rank_processes(who);
    if (!call.wait(options.deadline * (1 - before_the_end))) throw_stuck(who, options.deadline, seen, before);
    return *provided;
}

/// Open MPI writes to connections whose other end may be gone, and the signal for that ends a process that does not handle it:
/// the survivor, which would then be blamed. It sets a handler, not SIG_IGN, which programs started from here would inherit.
void survive_broken_connections() noexcept {
    struct sigaction now {};
    if (::sigaction(SIGPIPE, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return;
    now = {};
    now.sa_handler = [](int) {};
    now.sa_flags = SA_RESTART;
    ::sigemptyset(&now.sa_mask);
    ::sigaction(SIGPIPE, &now, nullptr);
}

}  // namespace

/// The program's own initialisation decides the level; an insufficient one is refused here instead of failing later.
void mpi_runtime::check_level(bool several_threads) {
    int const wanted = level_wanted(several_threads);
    int provided = MPI_THREAD_SINGLE;
    int is_main = 0;
    check(MPI_Query_thread(&provided), "MPI_Query_thread");
    check(MPI_Is_thread_main(&is_main), "MPI_Is_thread_main");
    any_thread_ = provided >= MPI_THREAD_SERIALIZED;
    if (!any_thread_ && is_main == 0)
        throw comm_error(errc::unavailable, fmt::format("MPI was initialised with {}: a communicator can then only be made by "
                                                        "the thread that did it; initialise MPI with "
                                                        "MPI_THREAD_SERIALIZED, or leave it to muster",
                                                        level_name(provided)));
    if (provided < wanted && wanted == MPI_THREAD_MULTIPLE)
        throw comm_error(errc::unavailable, fmt::format("MPI offers {}, but several threads were asked for, which needs {}",
                                                        level_name(provided), level_name(wanted)));
}

mpi_runtime::mpi_runtime(identity const& who, comm_options const& options) {
    int initialized = 0, finalized = 0;
    check(MPI_Initialized(&initialized), "MPI_Initialized");
    check(MPI_Finalized(&finalized), "MPI_Finalized");
    if (finalized != 0) throw comm_error(errc::unavailable, mpi_is_over);
    if (stuck_in_init)
        throw comm_error(errc::unavailable, "MPI did not come up before and is still at it; start the program again");
    survive_broken_connections();
    if (initialized == 0) {
        int const provided = initialise(who, options, seen_);
        owns_ = true;
        log_->debug("communicator: MPI initialised, {}", level_name(provided));
    }
    try {
        check_level(options.several_threads);
    } catch (...) {
        if (owns_) MPI_Finalize();
        throw;
    }
}

void mpi_runtime::remember(std::vector<world_record> ranks, int own, duration deadline) {
    ranks_ = std::move(ranks);
    own_ = own;
    deadline_ = deadline;
}

/// The program no longer uses MPI's world: its traffic and its error handler are free.
bool mpi_runtime::all_reach_the_end() noexcept try {
    using clock = std::chrono::steady_clock;
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    MPI_Request barrier = MPI_REQUEST_NULL;
    check(MPI_Ibarrier(MPI_COMM_WORLD, &barrier), "MPI_Ibarrier");
    auto const begin = clock::now();
    duration next_check = between_checks;
    for (;;) {
        int done = 0;
        check(MPI_Test(&barrier, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done != 0) return true;
        ::sched_yield();
        duration const waited = clock::now() - begin;
        if (waited <= next_check) continue;
        next_check = waited + between_checks;
        bool const late = deadline_.count() > 0 && waited > deadline_;
        auto const lost = lost_ranks(processes_of(ranks_), own_);
        if (!late && std::none_of(lost.begin(), lost.end(), [](auto const& each) { return each.dead; })) continue;
        for (auto const& each : lost)
            log_->error("the program ends without rank {} on {}: {}; MPI is left unfinalised", each.rank,
                        ranks_[static_cast<std::size_t>(each.rank)].host, each.why);
        if (lost.empty())
            log_->error("the program ends, and not all ranks have come to that within {}; MPI is left unfinalised",
                        format_duration(deadline_));
        return false;
    }
} catch (...) {
    return false;  // MPI or the log failed: neither helps
}

mpi_runtime::~mpi_runtime() {
    if (!owns_ || !mpi_is_running()) return;
    try {
        if (leave_)
            log_->warn("MPI is left unfinalised: operations were given up, and finalising would wait for the other ranks");
        else if (all_reach_the_end() && !call_with_deadline(bound(deadline_), [] { MPI_Finalize(); }))
            log_->error("MPI_Finalize did not come back within {}; it is left alone", format_duration(deadline_));
    } catch (...) {  // a log or a thread that fails must not end the program
    }
}

std::shared_ptr<mpi_runtime> mpi_runtime::acquire(identity const& who, comm_options const& options) {
    static std::mutex guard;
    static std::weak_ptr<mpi_runtime> current;
    static std::shared_ptr<mpi_runtime> kept;  // kept until the process ends
    std::scoped_lock const lock(guard);
    auto runtime = current.lock();
    if (runtime)
        runtime->check_level(options.several_threads);
    else
        runtime.reset(new mpi_runtime(who, options));
    current = runtime;
    if (options.keep_mpi) kept = runtime;
    return runtime;
}

}  // namespace muster::detail
