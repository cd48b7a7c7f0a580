// Watches the ranks of this node from their start to the last process' end.
#pragma once

#include <chrono>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "launch/ranks/output_writer.hpp"
#include "launch/run/rank_process.hpp"
#include "launch/run/stdin_forwarder.hpp"
#include "launch/settings/run_options.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/system/signals.hpp"
#include "pmix/pmi1/pmi1_server.hpp"
#include "pmix/server/server.hpp"

namespace muster {

/// Ranks die together: the first that fails is named, the others get SIGTERM and, after the grace, SIGKILL; so do their
/// descendants. A state machine on one thread: running -> stopping (on a failure, signal or deadline) -> leftovers (ranks gone,
/// descendants not) -> done.
class supervisor {
  public:
    /// Blocks the signals it handles and reads them from a descriptor. `guardian_fd` hangs up when the guardian dies.
    /// `executable` is what the ranks run, for naming the MPI it is linked with; `ends_at` when the job's time is up, if that is
    /// known.
    supervisor(run_options const& options, std::string executable, std::optional<std::chrono::system_clock::time_point> ends_at,
               int guardian_fd);
    ~supervisor();

    event_loop& loop() noexcept { return loop_; }

    /// Takes over the ranks as they are started, in order of rank; their pipes are read from now on.
    void add(rank_process rank);
    /// A rank could not be started: the others are stopped, and the run ends with this code.
    void start_failed(std::string const& message, int code);

    /// Runs until every process is gone and every byte is passed on. Returns muster's exit code.
    int run(pmix::server& pmix_server, pmix::pmi1_server& pmi1_server);

  private:
    enum class phase { running, stopping, leftovers, done };

    // what happens (supervisor.cpp)
    void on_signal();
    void on_pmi_events(std::vector<pmix::server_event> const& events);
    void on_pmi_event(pmix::server_event const& event);
    void on_child();
    void on_rank_end(rank_process& rank);
    void on_guardian_gone();
    void on_timeout();
    void on_start_timeout();
    void check_idle();
    void set_early_signal();
    void look_for_mpi();
    void look_for_mpi(rank_process& rank);

    // what is done about it (supervisor_stop.cpp)
    void fail(rank_process& rank, std::string const& what, int code, std::string const& advice = {});
    void stop(int code, int signal_number);
    void kill_all();
    void signal_ranks(int signal_number) noexcept;
    void on_ranks_gone();
    void end_leftovers(int signal_number);
    void finish();
    void drain_output();
    void judge_output();
    std::string singleton_fault(rank_process const& rank);
    void judge_ended_ranks();
    void fail_singleton(rank_process& rank, std::string const& fault);

    // output
    void watch_streams(rank_process& rank);
    void on_readable(rank_process& rank, rank_stream& stream);
    void on_writer_event();
    void flush_partials();
    void say(std::string const& line);

    unique_fd signals_;  // first: they must be blocked before any member starts a thread, which would take them away
    run_options const& options_;
    event_loop loop_;
    output_writer writer_;
    std::vector<rank_process> ranks_;
    pmix::server* pmix_ = nullptr;
    pmix::pmi1_server* pmi1_ = nullptr;
    std::string executable_;
    std::optional<std::string> linked_mpi_;  ///< the MPI library of the executable ("" if none), once it was looked for
    std::optional<std::chrono::system_clock::time_point> ends_at_;
    int guardian_fd_;
    phase phase_ = phase::running;
    int exit_code_ = 0;
    bool failed_ = false;  ///< a culprit has been named: later ends are consequences
    bool paused_output_ = false;
    bool start_timeout_due_ = false;           ///< it passed before any rank had met its world
    event_loop::clock::time_point kill_at_{};  ///< when the grace of a stopped run ends
    bool partial_flush_pending_ = false;
    int running_ = 0;
    std::time_t wall_start_;
    event_loop::clock::time_point start_;
    event_loop::clock::time_point last_output_{};
    signal_requests requests_;
};

}  // namespace muster
