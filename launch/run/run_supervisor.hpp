// Supervises a run from the start of its ranks to the end of their last process.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "launch/ranks/output_writer.hpp"
#include "launch/run/host_watch.hpp"
#include "launch/run/rank_group.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/system/signals.hpp"
#include "launch/watch/generation_loss.hpp"
#include "launch/watch/last_look.hpp"
#include "launch/watch/meeting_watch.hpp"
#include "launch/watch/run_deadlines.hpp"
#include "launch/watch/stop_watch.hpp"

namespace muster {

/// Ranks end together: the first that fails is named; the others, and all descendants, get SIGTERM and, after the grace, SIGKILL.
/// A state machine on one thread (run_phase). A group of ranks gathers what has happened as evidence, the judge decides who is to
/// blame, and `act_on` acts on the verdict.
class run_supervisor final : private group_events {
  public:
    /// Blocks the signals it handles and reads them from a descriptor. `run` must outlive this.
    explicit run_supervisor(run_context const& run);

    event_loop& loop() noexcept { return loop_; }
    output_writer& writer() noexcept { return writer_; }
    group_events& events() noexcept { return *this; }

    /// Runs until every process has ended and all output is passed on. Returns muster's exit code. Throws what `ranks.start`
    /// throws.
    int run(rank_group& ranks);

  private:
    // from the ranks
    run_phase now() const override { return phase_; }
    void on_ready() override;
    void on_rank_end(int rank, bool others_go_on) override;
    void on_world() override;
    void on_rank_gone() override { close_if_over(); }
    void decide_after(duration patience) override;
    void judge(std::function<verdict(evidence const&)> const& what) override;
    void on_output() override {
        deadlines_.note_output();
        last_look_.note_output();
    }
    void look_at_hosts() override { hosts_.look(); }
    void on_reader_gone() override;
    void on_closed() override;
    void say(std::string const& line) override;
    void on_generation_end() override;
    void on_generation(generation const& now, std::string const& why) override;

    // from outside
    void on_signal();
    void on_request_to_end(int signal_number, int sent);
    void on_guardian_gone();
    void on_writer_event();
    void expire(std::string const& reason);

    bool active() const noexcept { return phase_ == run_phase::starting || phase_ == run_phase::running; }
    evidence const& facts();
    void act_on(verdict const& judged);
    bool go_on_in_place(verdict const& judged);
    void say_loss(std::string const& what);
    void note_failure(verdict const& judged);
    std::vector<std::string> nodes_of(std::vector<int> const& ranks) const;
    void note_lost_hosts(std::vector<std::string> const& names);
    void plan_decision(duration patience);
    void decide();
    void ask_scheduler(std::chrono::milliseconds patience, bool for_nodes);
    void explain_end();
    void give_up(std::vector<culprit> const& lost);
    void watch_run();
    void send_notice(int number, std::function<void(signal_reach const&)> const& tell);
    void warn_ranks(std::string const& when, int number);
    void show_last_look();
    void explain_time_limit_to_user();
    void show_ranks(std::string const& command, std::function<void()> then);
    void stop(int code, int signal_number);
    void kill_all();
    void leave_at_once();
    void close_if_over();
    void take_saved_code();
    bool is_early_signal(int number) const;
    void check_output();
    void drain_output();

    unique_fd signals_;  // first: they must be blocked before any member starts a thread, which would take them away
    run_context const& run_;
    run_options const& options_;
    event_loop loop_;
    output_writer writer_;
    run_deadlines deadlines_;
    last_look last_look_;
    host_watch hosts_;
    signal_requests requests_;
    rank_group* ranks_ = nullptr;
    std::optional<meeting_watch> meeting_;
    std::optional<stop_watch> stops_;

    run_phase phase_ = run_phase::starting;
    int exit_code_ = 0;
    bool failed_ = false;  ///< something ends it: later ends are consequences
    bool asked_ = false;   ///< somebody has asked it to end
    int culprit_ = -1;     ///< the first rank that has failed
    said_tables said_tables_;
    std::optional<generation_loss> lost_;  ///< in the present generation, which the others outlive
    double lost_s_ = 0;                    ///< when its first loss was
    event_loop::clock::time_point start_ = event_loop::clock::now();
};

}  // namespace muster
