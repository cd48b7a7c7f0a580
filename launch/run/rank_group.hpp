// The ranks of a run as their supervisor handles them, whoever started them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "launch/run/members/member_world.hpp"
#include "launch/samples/sample_sums.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/watch/failure_judge.hpp"
#include "launch/watch/stop_looks.hpp"

namespace muster {

/// Says where a run stands: starting (some ranks are missing), running, stopping (after a failure, signal or deadline), closing
/// (no rank is left; other started processes must end), done.
enum class run_phase { starting, running, stopping, closing, done };

/// Receives what a group of ranks reports to its supervisor, after it has recorded what it knows (rank_group::known).
class group_events {
  public:
    virtual run_phase now() const = 0;
    /// All ranks are ready, and none has begun.
    virtual void on_ready() = 0;
    /// The program of a rank has ended. `others_go_on`: they can go on in place without it.
    virtual void on_rank_end(int rank, bool others_go_on) = 0;
    /// A rank has met its world, or left it, or nothing more will come of that.
    virtual void on_world() = 0;
    /// No process of a rank is left, or its shim no longer answers.
    virtual void on_rank_gone() = 0;
    /// Something has ended ranks, or asked them to end: the cause is decided after `patience`, or earlier if a decision is due.
    virtual void decide_after(duration patience) = 0;
    /// Passes what the group itself has seen, and how to judge it.
    virtual void judge(std::function<verdict(evidence const&)> const& what) = 0;
    virtual void on_output() = 0;
    /// Ranks can now follow the hosts that come and go, or a slot is free.
    virtual void look_at_hosts() = 0;
    /// Nobody reads standard output any more: the run ends without a message.
    virtual void on_reader_gone() = 0;
    /// Everything else that was started has ended.
    virtual void on_closed() = 0;
    virtual void say(std::string const& line) = 0;
    /// The present generation ends, as another begins in its place.
    virtual void on_generation_end() = 0;
    /// The remaining ranks go on in place as this generation; `why`: who left.
    virtual void on_generation(generation const& now, std::string const& why) = 0;

  protected:
    ~group_events() = default;
};

/// The ranks of one start, which run and end together. Used from the loop's thread.
class rank_group {
  public:
    rank_group(run_context const& run, group_events& events) : events_(events) {
        known_.job_id = shown_job(run);
        known_.in_job = run.given.fixed;
        known_.keeps_nodes = run.given.scheduler == scheduler_kind::slurm && run.options.is_elastic();
        for (auto const& one : run.life.now.members) known_.members.push_back(one.number);
        known_.allow_singletons = run.options.allow_singletons;
    }
    virtual ~rank_group() = default;
    rank_group(rank_group const&) = delete;
    rank_group& operator=(rank_group const&) = delete;

    evidence& known() noexcept { return known_; }

    /// Returns the present generation's ranks that run, or all of them.
    std::vector<present_rank> present_ranks(bool ended_too) const {
        std::vector<present_rank> found;
        for (auto const& one : known_.ranks)
            if (one.in_generation() && (ended_too || one.running())) found.push_back({one.rank, one.shown()});
        return found;
    }

    /// Starts ranks, or gathers them until `on_ready`, and watches them from now on. Throws what prevents the start of any.
    virtual void start() = 0;
    /// Lets the gathered ranks begin.
    virtual void go() {}

    /// Returns whether the others go on in place without the ended ranks that this verdict blames. If not, it may say why.
    virtual bool goes_on_without(verdict const&) { return false; }

    /// Returns whether the ranks go on in place with the present hosts, or have begun to.
    virtual bool take_hosts(host_pool const&) { return false; }

    /// Passes a signal on to all ranks; `notice`: only to processes that have a handler for it.
    virtual void signal(int number, bool notice) = 0;
    /// Asks all to end by this signal, and kills them after the grace.
    virtual void end(int signal_number) = 0;
    virtual void kill() = 0;
    /// Stops waiting for killed ranks that are still there, and names them. The rest of the run ends at once.
    virtual void give_up_rest() {
        for (auto& rank : known_.ranks)
            if (rank.here()) rank.now = rank_evidence::state::lost, known_.stuck.push_back(rank.rank);
    }
    /// Ends the processes that wait for a rank's place, since no rank is left. Their end is no failure.
    virtual void end_spares() {}
    /// Ends everything else that was started, since no rank is left, then calls `on_closed`. `culprit`: the rank that failed
    /// first, or -1.
    virtual void close(bool failed, int exit_code, int culprit) = 0;
    /// Writes the rest of the output after everything is closed. Returns a fault that appears only now, if there is one.
    virtual verdict finish(bool failed) = 0;

    /// Reads and notes what the engine has printed so far.
    virtual void hear_engine() {}

    /// A child of this process has ended.
    virtual void on_child() = 0;
    /// The writer of the output may have room again, or its reader has gone.
    virtual void resume_output() = 0;
    /// Notes what a rank that is to blame wrote last.
    virtual void read_last_lines(int) {}

    using rows_taker = std::function<void(std::vector<rank_row> const&)>;
    /// Inspects all ranks and calls `then`, at once or within some seconds. Only the latest of several inspections counts.
    virtual void inspect(rows_taker then) = 0;
    /// Runs `command` about each of these ranks, given by their numbers at the start; `then` gets those that it was run about.
    virtual void ask_about(std::string const& command, std::vector<int> const& whom, rows_taker then) = 0;

    using stopped_taker = std::function<void(held_ranks const& held)>;
    /// Finds out which of these ranks stand still now, and calls `then`, at once or within some seconds. A rank that cannot be
    /// inspected does not count.
    virtual void look_at_stopped(std::vector<int> const&, stopped_taker then) { then({}); }
    /// Kills this rank, because the others cannot go on with it; its end is judged like any other.
    virtual void kill_one(int) {}

  protected:
    /// Returns the job's number as users know it: they do not know Slurm's own number of an array's task.
    static std::string shown_job(run_context const& run) {
        auto const array = run.inherited.get_or("SLURM_ARRAY_JOB_ID", ""), task = run.inherited.get_or("SLURM_ARRAY_TASK_ID", "");
        bool const is_task = run.given.scheduler == scheduler_kind::slurm && !array.empty() && !task.empty();
        return without_controls(is_task ? array + "_" + task : run.given.job_id);
    }

    // The following is for runs that go on in place.

    /// Returns whether the remaining ranks can go on; if not, it may say why.
    bool can_go_on(std::optional<member_world> const& world) const {
        // A world of MPI does not outlive a rank.
        bool const by_mpi = known_.count([](auto const& r) { return r.in_world(); }) > 0;
        if (!world || by_mpi || events_.now() != run_phase::running) return false;
        std::string why_not;
        if (world->can_go_on(why_not)) return true;
        if (!why_not.empty()) events_.say("note: " + why_not);
        return false;
    }
    /// Makes the ranks with these numbers at the start the members of a generation, in order of rank.
    void number_anew(generation const& now, std::vector<int> const& seats) {
        events_.on_generation_end();
        std::vector<int> members;
        for (auto const& one : now.members) members.push_back(one.number);
        muster::number_anew(known_, members, seats);
    }
    void give_up_members(std::string const& why) {
        fail(failure_cause::rank_end, "the others cannot go on in place: " + why, exit_code(errc::peer_failed));
    }

    void fail(failure_cause cause, std::string const& text, int exit_code) {
        events_.judge([&](evidence const&) { return blame_run(cause, text, exit_code); });
    }

    evidence known_;
    group_events& events_;
};

}  // namespace muster
