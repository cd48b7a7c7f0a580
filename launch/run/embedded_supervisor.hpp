// Supervises the ranks of this node from their start to the end of their last process.
#pragma once

#include <chrono>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/observe/memory_kills.hpp"
#include "launch/ranks/output_pump.hpp"
#include "launch/ranks/output_writer.hpp"
#include "launch/run/stdin_forwarder.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/system/signals.hpp"
#include "launch/watch/child_rank.hpp"
#include "launch/watch/failure_judge.hpp"
#include "launch/watch/rank_table.hpp"
#include "launch/watch/run_deadlines.hpp"
#include "pmix/pmi1/pmi1_server.hpp"
#include "pmix/server/server.hpp"

namespace muster {

/// Ranks die together: the first that fails is named, the others get SIGTERM and, after the grace, SIGKILL; so do their
/// descendants. A state machine on one thread: running -> stopping (on a failure, signal or deadline) -> leftovers (ranks gone,
/// descendants not) -> done.
class embedded_supervisor {
  public:
    /// Blocks the signals it handles and reads them from a descriptor. `run` must outlive this.
    explicit embedded_supervisor(run_context const& run);
    ~embedded_supervisor();

    event_loop& loop() noexcept { return loop_; }

    /// Before the ranks are started: what is counted later is compared with this.
    void note_memory_kills() { memory_ = count_memory_kills(); }

    /// Takes over the ranks as they are started, in order of rank; their pipes are read from now on.
    void add(child_rank rank);
    /// A rank could not be started: the others are stopped, and the run ends with this code.
    void start_failed(std::string const& message, int code);

    /// Runs until every process is gone and every byte is passed on. Returns muster's exit code. `master_port` is the MASTER_PORT
    /// of the ranks.
    int run(pmix::server& pmix_server, pmix::pmi1_server& pmi1_server, int master_port);

  private:
    enum class phase { running, stopping, leftovers, done };

    // what happens (embedded_supervisor.cpp)
    void on_signal();
    void poll_pmix();
    void on_pmi_events(std::vector<pmix::server_event> const& events);
    void on_pmi_event(pmix::server_event const& event);
    void on_child();
    void on_rank_end(child_rank& rank);
    void on_guardian_gone();
    void detect_mpi();
    void detect_mpi(child_rank& rank);

    // what is done about it (embedded_supervisor_stop.cpp)
    evidence const& facts();  ///< as of now
    void judge(std::function<verdict(evidence const&)> const& what);
    void act_on(verdict const& judged);
    void stop(int code, int signal_number);
    void kill_all();
    void signal_ranks(int signal_number) noexcept;
    void on_ranks_gone();
    void end_leftovers(int signal_number);
    void finish();
    void drain_output();
    void check_output();
    void on_writer_event();
    void on_output(child_rank& rank, rank_stream& stream);
    void say(std::string const& line);

    // whom to blame, and what ranks are doing (embedded_supervisor_watch.cpp)
    void decide_cause();
    void explain_end();
    std::vector<rank_row> inspect_ranks() const;
    void show_ranks(std::string const& command);
    void expire(std::string const& reason);
    void on_start_timeout();
    void note_unmet();
    void await_others(int ended);
    void note_early_end();

    unique_fd signals_;  // first: they must be blocked before any member starts a thread, which would take them away
    run_options const& options_;
    allocation const& given_;
    environment const& inherited_;
    run_outcome* outcome_;
    event_loop loop_;
    evidence known_;
    std::vector<child_rank> ranks_;
    output_writer writer_;
    output_pump output_;  ///< after the ranks, whose streams it refers to
    run_deadlines deadlines_;
    pmix::server* pmix_ = nullptr;
    pmix::pmi1_server* pmi1_ = nullptr;
    int guardian_fd_;
    phase phase_ = phase::running;
    int exit_code_ = 0;
    bool forget_due_ = false;                     ///< the PMIx server is to forget ranks soon
    bool failed_ = false;                         ///< a culprit has been named: later ends are consequences
    bool start_timeout_due_ = false;              ///< it passed before any rank had met its world
    bool start_doubt_ = false;                    ///< ranks were missing when last looked at
    int early_end_ = -1;                          ///< the first rank that ended well while others ran
    std::optional<std::vector<rank_row>> unmet_;  ///< of the first look
    std::vector<rank_row> early_inspection_;
    memory_kills memory_;  ///< before the ranks were started
    int master_port_ = 0;
    std::optional<event_loop::clock::time_point> grace_ends_;  ///< of a stopped run
    int running_ = 0;
    std::time_t wall_start_;
    event_loop::clock::time_point start_;
    signal_requests requests_;
};

}  // namespace muster
