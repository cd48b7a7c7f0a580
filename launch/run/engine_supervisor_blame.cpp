// The engine supervisor's third part: whom to blame when ranks end or are lost.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/run/engine_supervisor.hpp"
#include "launch/system/exit_status.hpp"
#include "launch/watch/failure_report.hpp"
#include "launch/watch/job_end.hpp"

namespace muster {

namespace {

constexpr duration exit_code_patience{3};  ///< for the exit code of an engine that ended its ranks
constexpr int open_mpi_lost_others = 14;   ///< MPI_ERR_UNKNOWN, with which Open MPI 5 aborts where others, or PMIx, are gone

}  // namespace

/// "; ending 3 ranks", where any are left.
std::string engine_supervisor::ending() const {
    return ranks_.running() == 0 ? "" : fmt::format("; ending {}", count_of_ranks(ranks_.running()));
}

/// The first end is held, since what killed the rank may be about to kill all. A later one takes its place where the engine had
/// asked the first to end, and not this one, or MPI ended the first because others were gone.
void engine_supervisor::suspect(suspicion const& who, duration patience) {
    if (failed_) return;
    auto const follows = [this](suspicion const& one) {
        return one.asked || (ranks_[one.rank].uses_mpi && one.fault.exit_code == open_mpi_lost_others);
    };
    if (!suspect_ || (follows(*suspect_) && !follows(who))) suspect_ = who;
    decide_cause_after(patience);
}

void engine_supervisor::decide_cause_after(duration patience) {
    if (failed_ || std::exchange(deciding_, true)) return;
    loop_.after(patience, [this] {
        if (deciding_) decide_cause();
    });
}

/// Something has ended ranks, or asked them to end. Who it was, the surest word first.
void engine_supervisor::decide_cause() {
    deciding_ = false;
    if (failed_ || phase_ == phase::closing || phase_ == phase::done) return close_if_over();
    if (abort_) {
        auto& rank = ranks_[abort_->rank];
        int const code = abort_->code & 0xff;
        return fail(rank, fmt::format("aborted the job with code {} (MPI_Abort)", abort_->code), code == 0 ? 1 : code);
    }
    if (blame_job() || blame_engine() || blame_daemon() || blame_leaver()) return;
    if (suspect_ && !suspect_->asked) {
        if (may_be_aborted() && (await_engine() || blame_abort())) return;
        auto const who = *suspect_;
        auto advice = who.fault.advice;
        // Slurm's PMIx kills a world, watchers too, when one of its ranks dies, and that one's may not have told of it.
        bool const killed = who.fault.exit_code == 128 + SIGKILL;
        if ((advice.empty() || killed) && ranks_[who.rank].uses_mpi && ranks_.count(remote_rank::state::lost) > 0)
            advice = fmt::format("{} killed others at the same moment: another rank may have failed first", engine_.name);
        return fail(ranks_[who.rank], who.fault.what, who.fault.exit_code, advice, who.last_lines);
    }
    if (blame_watchers() || await_engine()) return;
    // Slurm's PMIx kills a world that one rank has left early, and does not name that rank.
    auto const left = std::find_if(ranks_.begin(), ranks_.end(), [](auto const& r) { return r.left_early; });
    bool const all = ranks_.count(remote_rank::state::lost) + ranks_.count(remote_rank::state::gone) == ranks_.size();
    if (all && left != ranks_.end())
        return fail(*left,
                    fmt::format("exited with code 0, probably without MPI_Finalize, and {} then ended the others", engine_.name),
                    1, "call MPI_Finalize on every path");
    if (auto const absent = ranks_.list(remote_rank::state::absent); !absent.empty())
        return fail(fmt::format("{} {} before {} of {} ranks came up: {}; see its own message above, and check those nodes with "
                                "muster doctor --allocation",
                                engine_.name, engine_status_ ? describe_end(*engine_status_) : "ended its ranks",
                                ranks_.count(remote_rank::state::absent), ranks_.size(), absent),
                    exit_code(errc::unavailable));
    // Hydra, told of one process that SIGKILL has ended, ends all the others so, and itself with that number.
    if (first_killed_ >= 0 && engine_status_ && (shell_code(*engine_status_) & 0x7f) == SIGKILL)
        return fail_watchers([this](remote_rank const& rank) { return rank.job.who.rank == first_killed_; });
    if (engine_status_ && shell_code(*engine_status_) != 0) return fail_as_engine();
    if (ranks_.count(remote_rank::state::lost) > 0)
        return fail(fmt::format("lost {}: the node is gone, or what started the ranks there was killed{}",
                                ranks_.list(remote_rank::state::lost), ending()),
                    exit_code(errc::peer_failed));
    if (suspect_)
        return fail(fmt::format("{} {}, which {} or the scheduler had sent to its ranks{}",
                                ranks_.name_of(ranks_[suspect_->rank]), suspect_->fault.what, engine_.name, ending()),
                    suspect_->fault.exit_code);
    // A signal for ranks that live on after it, such as Slurm's --signal=TERM@120.
    asked_ = false;
    waited_for_engine_ = false;
    close_if_over();
}

/// The scheduler itself says that it ends the job.
bool engine_supervisor::blame_job() {
    auto const end = ask_job_end(given_, inherited_, patient_question);
    // A job that outlives its nodes (salloc --no-kill) goes on, but srun ends the step on all of them.
    if (end == job_end::going_on)
        if (auto const lost = give_up_down_nodes(patient_question); !lost.empty()) {
            fail(describe(job_end::node_failed, given_) + lost + ending(), exit_code(errc::peer_failed));
            return true;
        }
    auto const why = describe(end, given_);
    if (why.empty()) return false;
    if (end != job_end::node_failed) {
        fail(why + ending(), 128 + SIGTERM);
        return true;
    }
    auto const lost = give_up_down_nodes(patient_question);
    fail(fmt::format("{}{}{}", why, lost, ending()), exit_code(errc::peer_failed));
    return true;
}

/// The scheduler has lost a node: " (ranks 4-7 on node2)", or nothing where it does not say which. Nobody waits for them any more.
std::string engine_supervisor::give_up_down_nodes(std::chrono::milliseconds patience) {
    auto const down = ask_down_nodes(given_, inherited_, patience);
    auto const is_there = [&](remote_rank const& rank) {
        auto const& name = given_.nodes.at(static_cast<std::size_t>(rank.node)).name;
        return std::find(down.begin(), down.end(), name) != down.end();
    };
    auto const lost = ranks_.list(is_there);
    for (auto& rank : ranks_)
        if (is_there(rank) && !rank.over()) rank.now = remote_rank::state::lost;
    return lost.empty() ? "" : " (" + lost + ")";
}

/// The engine was killed, and its ranks after it.
bool engine_supervisor::blame_engine() {
    if (!engine_status_ || !WIFSIGNALED(*engine_status_)) return false;
    fail(fmt::format("{} {}, and with it the start of the ranks was lost{}", engine_.name, describe_end(*engine_status_),
                     ending()),
         exit_code(errc::peer_failed));
    return true;
}

bool engine_supervisor::blame_daemon() {
    if (first_orphan_ < 0) return false;
    auto const& orphan = ranks_[first_orphan_];
    auto const its = ranks_.list([&](remote_rank const& rank) { return rank.node == orphan.node; });
    fail(fmt::format("{} on {} died, which had started {}{}", orphan.daemon_lost, ranks_.host_of(orphan), its, ending()),
         exit_code(errc::peer_failed));
    return true;
}

/// A rank has left its MPI world: what befalls the others comes of it. A fault of memory or arithmetic is a rank's own, perhaps of
/// its last moments behind MPI_Finalize, when some have ended already.
bool engine_supervisor::blame_leaver() {
    auto const* victim = suspect_ ? &ranks_[suspect_->rank] : nullptr;
    if (phase_ != phase::running) return false;
    if (victim != nullptr && victim->wait_status && WIFSIGNALED(*victim->wait_status) &&
        !may_be_sent_to_all(*victim->wait_status))
        return false;
    auto const* leaver = ranks_.find_leaver(suspect_ ? suspect_->rank : -1);
    if (leaver == nullptr) return false;
    auto const then = victim != nullptr ? fmt::format("{} {}", ranks_.name_of(*victim), suspect_->fault.what)
                                        : fmt::format("{} ended them", engine_.name);
    fail(fmt::format("{} exited with code 0 while others were in its MPI world, so probably without MPI_Finalize, and then {}{}; "
                     "call MPI_Finalize on every path",
                     ranks_.name_of(*leaver), then, ending()),
         1);
    return true;
}

/// Of Slurm's PMIx, which kills a world, watchers too, when a rank calls MPI_Abort. What is heard of its ranks then may be the end of any,
/// and srun's code is the one that was given.
bool engine_supervisor::may_be_aborted() {
    return engine_.name == "srun" && suspect_ && !suspect_->asked && ranks_[suspect_->rank].uses_mpi &&
           ranks_.count(remote_rank::state::lost) > 0;
}

bool engine_supervisor::blame_abort() {
    if (!engine_status_ || !WIFEXITED(*engine_status_)) return false;
    int const code = WEXITSTATUS(*engine_status_);
    if (code == 0 || code > 128 || code == suspect_->fault.exit_code || code == open_mpi_lost_others) return false;
    auto const caller =
        std::find_if(ranks_.begin(), ranks_.end(), [&](auto const& r) { return r.wait_status && *r.wait_status == code << 8; });
    if (caller == ranks_.end())
        fail_as_engine();
    else
        fail(*caller, fmt::format("exited with code {}", code), code);
    return true;
}

void engine_supervisor::fail_as_engine() {
    fail(fmt::format("{} ended its ranks and {} (MPI_Abort of a rank, a fault of {}, or a limit of the scheduler: see above)",
                     engine_.name, describe_end(*engine_status_), engine_.name),
         shell_code(*engine_status_));
}

void engine_supervisor::fail_watchers(std::function<bool(remote_rank const&)> const& of) {
    bool const one = std::count_if(ranks_.begin(), ranks_.end(), of) == 1;
    fail(fmt::format("the {} of {} {} killed{}", one ? "watcher" : "watchers", ranks_.list(of), one ? "was" : "were", ending()),
         exit_code(errc::peer_failed));
}

/// Shims have ended without a word while others, and their nodes, live: the engine then ends the others.
bool engine_supervisor::blame_watchers() {
    auto const is_lost = [](remote_rank const& rank) { return rank.watcher_killed || rank.now == remote_rank::state::lost; };
    std::size_t cut = 0, lost = 0;
    for (auto const& rank : ranks_) {
        lost += is_lost(rank) ? 1 : 0;
        cut += is_lost(rank) && (rank.watcher_killed || rank.cut) ? 1 : 0;
    }
    if (phase_ != phase::running || cut == 0 || cut != lost || lost == ranks_.size()) return false;
    fail_watchers(is_lost);
    return true;
}

/// The engine ends its ranks: MPI_Abort, a limit, a node that is lost. Its exit code tells which.
bool engine_supervisor::await_engine() {
    bool const by_engine = asked_ || (suspect_ && suspect_->asked) || may_be_aborted() ||
                           ranks_.count(remote_rank::state::lost) + ranks_.count(remote_rank::state::gone) == ranks_.size() ||
                           (phase_ == phase::gathering && ranks_.count(remote_rank::state::absent) > 0);
    if (!by_engine || engine_status_ || std::exchange(waited_for_engine_, true)) return false;
    decide_cause_after(exit_code_patience);
    return true;
}

/// SIGTERM has come to this process: why, if the scheduler knows.
void engine_supervisor::explain_end() {
    auto const end = ask_job_end(given_, inherited_);
    auto const why = describe(end, given_);
    if (why.empty()) return;
    if (end != job_end::node_failed) return say("error: " + why);
    say("error: " + why + give_up_down_nodes(brief_question));
    exit_code_ = exit_code(errc::peer_failed);
    close_if_over();
}

void engine_supervisor::on_message(remote_rank& rank, wire::asked_to_end const& asked) {
    if (asked.number == SIGKILL && !rank.asked) {
        rank.watcher_killed = true;
        if (first_killed_ < 0) first_killed_ = rank.job.who.rank;
    }
    rank.asked = true;
    if (phase_ != phase::gathering && phase_ != phase::running) return;
    asked_ = true;
    if (suspect_ && suspect_->rank == rank.job.who.rank) suspect_->asked = true;  // the signal came after the program's end
    decide_cause_after(blame_patience);
}

void engine_supervisor::on_message(remote_rank&, wire::aborting const& aborting) {
    if (aborting.rank < 0 || aborting.rank >= static_cast<int>(ranks_.size())) return;
    if (!abort_) abort_ = aborting;
    decide_cause_after(duration(0.3));
}

}  // namespace muster
