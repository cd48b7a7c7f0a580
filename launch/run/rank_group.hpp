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
#include "launch/settings/run_context.hpp"
#include "launch/watch/failure_judge.hpp"

namespace muster {

/// Where a run stands: starting (not all ranks are there), running, stopping (on a failure, signal or deadline), closing (no rank is left;
/// what else was started must end), done.
enum class run_phase { starting, running, stopping, closing, done };

/// What a group of ranks tells its supervisor. It writes down what it knows of them first (rank_group::known).
class group_events {
  public:
    virtual run_phase now() const = 0;
    /// All ranks are there, and none has been started.
    virtual void on_ready() = 0;
    /// The program of a rank has ended.
    virtual void on_rank_end(int rank) = 0;
    /// A rank has met its world, or left it, or nothing more comes of that.
    virtual void on_world() = 0;
    /// Nothing is left of a rank, or nobody answers for it any more.
    virtual void on_rank_gone() = 0;
    /// Something has ended ranks, or asked them to end: who it was is decided after `patience`, or when it is due anyhow.
    virtual void decide_after(duration patience) = 0;
    /// What the group has seen by itself, and how that is to be judged.
    virtual void judge(std::function<verdict(evidence const&)> const& what) = 0;
    virtual void on_output() = 0;
    /// Ranks can follow the hosts that come and go now, or a slot is free.
    virtual void look_at_hosts() = 0;
    /// Nobody reads standard output any more: the run ends, and says nothing.
    virtual void on_reader_gone() = 0;
    /// Whatever else was started has ended.
    virtual void on_closed() = 0;
    virtual void say(std::string const& line) = 0;
    /// The ranks that are left go on in place, as this generation; `why`: who left.
    virtual void on_generation(generation const& now, std::string const& why) = 0;

  protected:
    ~group_events() = default;
};

/// The ranks of one start: all run together and end together. Used from the loop's thread.
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

    /// Ranks are started, or are gathered until `on_ready`, and are watched from now on. Throws what keeps any from being started.
    virtual void start() = 0;
    /// Lets the ranks that were gathered begin.
    virtual void go() {}

    /// Whether the others go on in place without the ranks that this verdict blames, which have ended. If not, it may say why.
    virtual bool goes_on_without(verdict const&) { return false; }

    /// Whether the ranks go on in place with the hosts that there are now, or have begun to.
    virtual bool take_hosts(host_pool const&) { return false; }

    /// Passes a signal on to all ranks; `notice`: only to processes that have a handler for it.
    virtual void signal(int number, bool notice) = 0;
    /// Asks all to end by this signal, and kills them after the grace.
    virtual void end(int signal_number) = 0;
    virtual void kill() = 0;
    /// Does no longer wait for those that are still there, which have been killed: says who they are. What is left of the run is to end at once.
    virtual void give_up_rest() {
        for (auto& rank : known_.ranks)
            if (rank.here()) rank.now = rank_evidence::state::lost, known_.stuck.push_back(rank.rank);
    }
    /// No rank is left: ends the processes that wait for the place of one. Their end is no failure.
    virtual void end_spares() {}
    /// No rank is left: ends what else was started, then tells `on_closed`. `culprit`: the rank that failed first, or -1.
    virtual void close(bool failed, int exit_code, int culprit) = 0;
    /// All is closed: writes what is left of the output. What is wrong only now, if anything is.
    virtual verdict finish(bool failed) = 0;

    /// Notes what the engine has said until now and is still to be read.
    virtual void hear_engine() {}

    /// A child of this process has ended.
    virtual void on_child() = 0;
    /// The writer of the output may have room again, or its reader has gone.
    virtual void resume_output() = 0;
    /// Notes what a rank that is to blame has written last.
    virtual void read_last_lines(int) {}

    using rows_taker = std::function<void(std::vector<rank_row> const&)>;
    /// Looks at all ranks and calls `then`, at once or within some seconds. Of several looks the latest counts.
    virtual void inspect(rows_taker then) = 0;
    /// Has `command` run about each of these ranks, by their numbers at the start; `then` gets those that it was run about.
    virtual void ask_about(std::string const& command, std::vector<int> const& whom, rows_taker then) = 0;

    using stopped_taker = std::function<void(std::vector<int> const& stopped)>;
    /// Looks from now on which of these ranks are stopped, and calls `then`, at once or within some seconds. One that cannot be looked at is not.
    virtual void look_at_stopped(std::vector<int> const&, stopped_taker then) { then({}); }
    /// Kills this one, as the others cannot go on with it; its end is judged like any other.
    virtual void kill_one(int) {}

  protected:
    /// As users know it: of a task of an array Slurm's own number says nothing to them.
    static std::string shown_job(run_context const& run) {
        auto const array = run.inherited.get_or("SLURM_ARRAY_JOB_ID", ""), task = run.inherited.get_or("SLURM_ARRAY_TASK_ID", "");
        bool const is_task = run.given.scheduler == scheduler_kind::slurm && !array.empty() && !task.empty();
        return without_controls(is_task ? array + "_" + task : run.given.job_id);
    }

    // Of runs that go on in place.

    /// Whether the ranks that are left can; else it may say why not.
    bool can_go_on(std::optional<member_world> const& world) const {
        // MPI's worlds do not outlive a rank.
        bool const by_mpi = known_.count([](auto const& r) { return r.in_world(); }) > 0;
        if (!world || by_mpi || events_.now() != run_phase::running) return false;
        std::string why_not;
        if (world->can_go_on(why_not)) return true;
        if (!why_not.empty()) events_.say("note: " + why_not);
        return false;
    }
    /// The members of a generation, in order of rank, are those with these numbers at the start.
    void number_anew(generation const& now, std::vector<int> const& seats) {
        known_.suspect = -1;
        for (auto& rank : known_.ranks) rank.left_out = rank.is_rank();
        int number = 0;
        for (int const seat : seats) {
            known_.members[static_cast<std::size_t>(seat)] = now.members[static_cast<std::size_t>(number)].number;
            known_[seat].number = number++;
            known_[seat].spare = -1;
            known_[seat].left_out = false;
        }
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
