// Supervises ranks that an engine started on several nodes, through their shims.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/engine/engine_table.hpp"
#include "launch/ranks/output_writer.hpp"
#include "launch/record/gpu_use_record.hpp"
#include "launch/run/remote/remote_output.hpp"
#include "launch/run/remote/remote_ranks.hpp"
#include "launch/run/stdin_forwarder.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/system/signals.hpp"
#include "launch/watch/failure_report.hpp"
#include "launch/watch/run_deadlines.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"
#include "launch/wire/shim_directions.hpp"
#include "launch/wire/shim_listener.hpp"

namespace muster {

/// Ranks start together, once every shim is there and holds its ports, and die together: the first that fails is named, the
/// others get SIGTERM and, after the grace, SIGKILL, each from its shim. Whatever the engine does or leaves undone, the run ends
/// by deadlines of its own. A state machine on one thread: gathering -> running -> stopping (on a failure, signal or deadline) ->
/// closing (no rank is left; the engine must end) -> done.
class engine_supervisor {
  public:
    /// Blocks the signals it handles, listens for the shims. `ranks` in order of rank. `run` must outlive this. Throws
    /// errc::system.
    engine_supervisor(run_context const& run, engine_row const& engine, std::vector<remote_rank> ranks);
    ~engine_supervisor();

    /// Sets MUSTER_LAUNCHER and MUSTER_TOKEN, which the shims need. Throws errc::usage, errc::system.
    void direct_shims(engine_command& command, engine_job const& job);

    /// Starts the engine and runs until every rank and the engine are gone. Returns muster's exit code. Throws program_error if
    /// the engine cannot be started.
    int run(engine_command const& command);

  private:
    static constexpr std::size_t largest_frame_bytes = 16u << 20;
    enum class phase { gathering, running, stopping, closing, done };

    // connections (engine_supervisor.cpp)
    void on_arrival(wire::hello const& hello, std::unique_ptr<frame_channel>& link);
    void take_over(remote_rank& rank, std::unique_ptr<frame_channel> link);
    void on_frame(remote_rank& rank, std::string_view frame);
    void on_output(remote_rank& rank, wire::output_piece const& piece);
    void on_message(remote_rank& rank, wire::hello const& hello);
    void on_message(remote_rank& rank, wire::ready const& ready);
    void on_message(remote_rank& rank, wire::started const& started);
    void on_message(remote_rank& rank, wire::failed const& failed);
    void on_message(remote_rank& rank, wire::ended const& ended);
    void on_message(remote_rank& rank, wire::gone const& gone);
    void on_message(remote_rank& rank, wire::used_mpi const& used);
    void on_message(remote_rank& rank, wire::orphaned const& orphaned);
    void on_message(remote_rank& rank, wire::asked_to_end const& asked);
    void on_message(remote_rank& rank, wire::aborting const& aborting);
    void on_message(remote_rank& rank, wire::met const& met);
    void on_message(remote_rank& rank, wire::settled const&);
    void on_message(remote_rank& rank, wire::pong const& pong);
    void on_message(remote_rank& rank, wire::seen const& seen);
    void on_message(remote_rank& rank, wire::gpus_used const& used);
    template <typename Other>
    void on_message(remote_rank&, Other const&) {}  // what only a shim gets
    void on_link_lost(remote_rank& rank, std::string const& reason);
    void start_ranks();

    // hosts whose agents carry what ranks tell (engine_supervisor_hosts.cpp)
    void take_host(wire::hello const& hello, std::unique_ptr<frame_channel>& link);
    void take_again(wire::hello const& hello, std::unique_ptr<frame_channel>& link);
    void on_host_frame(int number, std::string_view frame);
    void on_host_lost(int number, std::string const& reason);

    // the engine and the outside (engine_supervisor.cpp)
    void on_signal();
    void on_child();
    void on_engine_end();
    std::string advice_on_absent() const;
    void on_guardian_gone();
    void on_reader_gone();
    void on_writer_event();
    void note_progress() { last_progress_ = event_loop::clock::now(); }
    void watch_gathering();
    void on_gather_timeout();
    std::string list_missing() const;

    // ending (engine_supervisor_stop.cpp)
    void fail(std::string const& message, int code);
    void fail(remote_rank& rank, std::string const& what, int code, std::string const& advice = {},
              std::string const& last_lines = {});
    void stop(int code, int signal_number);
    void kill_all();
    void close_if_over();
    void close_down();
    void end_engine(int signal_number);
    void cancel_step();
    void wait_for_cancel();
    void finish();
    void check_output();
    void drain_output();

    void say(std::string const& line);

    // whom to blame (engine_supervisor_blame.cpp)
    struct suspicion {
        int rank;
        end_fault fault;
        std::string last_lines;
        bool asked;  ///< its shim had been asked to end, too: by whoever killed it
    };
    void suspect(suspicion const& who, duration patience);
    void decide_cause_after(duration patience);
    void decide_cause();
    bool await_engine();
    bool blame_job();
    bool blame_engine();
    bool blame_daemon();
    bool blame_leaver();
    bool may_be_aborted();
    bool blame_abort();
    void fail_as_engine();
    void note_leaver();
    void blame_early_end();
    bool blame_watchers();
    void fail_watchers(std::function<bool(remote_rank const&)> const& of);
    void explain_end();
    std::string give_up_down_nodes(std::chrono::milliseconds patience);
    std::string ending() const;

    // what ranks are doing (engine_supervisor_watch.cpp)
    void inspect_ranks(std::string const& command, std::vector<int> const& whom, duration limit, std::function<void()> then);
    void finish_inspection();
    void show_ranks();
    void expire(std::string const& reason);
    void ask_on_hang(std::vector<int> const& whom, std::function<void()> then);
    void check_meeting();
    void check_meeting_at_deadline();
    void note_unmet();
    void beat();
    bool are_nodes_silent(std::vector<remote_rank const*> const& silent) const;
    void count_answers();

    unique_fd signals_;  // first: they must be blocked before any member starts a thread, which would take them away
    run_options const& options_;
    allocation const& given_;
    environment const& inherited_;
    run_outcome* outcome_;
    engine_row const& engine_;
    wire_up speaks_ = wire_up::pmix;
    event_loop loop_;
    output_writer writer_;
    gpu_use_record gpu_record_;
    shim_listener listener_;
    std::optional<shim_directions> directions_;
    remote_ranks ranks_;
    remote_output output_;  ///< after the ranks, whose shims it tells of room
    run_deadlines deadlines_;
    int guardian_fd_;
    pid_t engine_pid_ = -1;
    std::optional<int> engine_status_;
    phase phase_ = phase::gathering;
    int exit_code_ = 0;
    bool failed_ = false;    ///< a culprit has been named: later ends are consequences
    bool deciding_ = false;  ///< `decide_cause` is due
    std::optional<suspicion> suspect_;
    bool asked_ = false;  ///< the engine or the scheduler has asked shims to end
    std::optional<wire::aborting> abort_;
    int inspection_ = 0;  ///< number of the last inspection of the ranks
    std::vector<int> asked_about_;
    std::function<void()> after_inspection_;
    int beat_ = 0;                ///< number of the last ping
    int agents_count_since_ = 0;  ///< number of the ping from which on agents must answer
    bool start_timeout_due_ = false;
    bool start_doubt_ = false;
    std::optional<std::vector<rank_row>> unmet_;  ///< of the first look
    bool leaver_noted_ = false;
    bool waited_for_engine_ = false;
    bool cancelled_ = false;
    bool ended_engine_ = false;  ///< it ends because we told it to: its code says nothing
    pid_t cancel_pid_ = -1;
    std::size_t ready_ = 0;
    int culprit_ = -1;
    int first_lost_ = -1;                            ///< the first rank whose shim was lost
    int first_killed_ = -1;                          ///< the first rank whose shim's guard was killed
    int first_orphan_ = -1;                          ///< the first rank whose daemon died, if no watcher had been lost before
    event_loop::clock::time_point start_;            ///< of the engine, then of the ranks
    event_loop::clock::time_point last_progress_{};  ///< while ranks are gathered: a host or a rank has come, or was placed
    int stop_signal_ = 0;                            ///< what ranks were told to end by
    signal_requests requests_;
};

}  // namespace muster
