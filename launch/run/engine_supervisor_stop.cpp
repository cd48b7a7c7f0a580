// The engine supervisor's second half: ending ranks, the engine, and the run.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/run/engine_supervisor.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/exit_status.hpp"

namespace muster {

namespace {

constexpr duration beyond_grace{2};     ///< for the shims' messages after they have killed their ranks
constexpr duration engine_patience{5};  ///< for an engine whose ranks are all gone, until the user is told
constexpr duration agent_patience{2};   ///< for Hydra's agents in a PBS job
constexpr duration longest_wait{120};   ///< for the same, until it is ended
constexpr duration engine_grace{1.5};   ///< for an engine that was asked to end

}  // namespace

void engine_supervisor::fail(std::string const& message, int code) {
    if (failed_) return;
    failed_ = true;
    say("error: " + message);
    stop(code, SIGTERM);
}

void engine_supervisor::stop(int code, int signal_number) {
    if (phase_ != phase::gathering && phase_ != phase::running) return;
    phase_ = phase::stopping;
    exit_code_ = code;
    stop_signal_ = signal_number;
    ranks_.send_all(wire::signal{signal_number, true});
    loop_.after(options_.grace + beyond_grace, [this] {
        if (phase_ != phase::stopping) return;
        for (auto& rank : known_.ranks)
            if (rank.here()) rank.now = rank_evidence::state::lost;
        say(fmt::format("{} did not end within {} (--grace, and {} more): giving them up",
                        known_.list(rank_evidence::state::lost), format_duration(options_.grace), format_duration(beyond_grace)));
        close_down();
    });
    close_if_over();
}

void engine_supervisor::kill_all() {
    if (phase_ == phase::closing) return end_engine(SIGTERM);  // no rank is left, only the engine
    if (phase_ == phase::gathering || phase_ == phase::running) phase_ = phase::stopping;
    stop_signal_ = SIGKILL;
    ranks_.send_all(wire::signal{SIGKILL, true});
    for (auto& rank : ranks_) rank.link.flush(duration(0.5));
    close_if_over();
}

void engine_supervisor::close_if_over() {
    if (phase_ == phase::closing || phase_ == phase::done || phase_ == phase::gathering) return;
    if (std::any_of(known_.ranks.begin(), known_.ranks.end(), [](auto const& r) { return r.here(); })) return;
    if (!failed_ && known_.deciding) return;  // their cause is decided first
    close_down();
}

/// No known rank is left. An engine whose ranks all ended well ends by itself; another one may never.
void engine_supervisor::close_down() {
    phase_ = phase::closing;
    if (engine_.name == "srun" && culprit_ >= 0)  // so that sacct shows it
        for (auto& rank : ranks_) rank.link.send(wire::encode(wire::bye{rank.job.who.rank == culprit_ ? exit_code_ : 0}));
    else
        ranks_.send_all(wire::bye{0});
    if (known_.engine_status) return finish();
    bool const broken = known_.count([](auto const& r) { return !r.daemon_lost.empty(); }) > 0;
    if (broken || known_.count(rank_evidence::state::lost) > 0) return end_engine(SIGTERM);
    bool const complete = known_.count(rank_evidence::state::absent) == 0;  // else some shims are still to come
    bool const clean = complete && !failed_;
    // pbs_tmrsh does not always return when its task has ended, as where the first chunk has mpiprocs=0; Hydra waits for it.
    if (engine_.name == "mpiexec") loop_.after(agent_patience, [] { kill_descendants_called("pbs_tmrsh"); });
    if (clean)
        loop_.after(engine_patience, [this] {
            if (phase_ == phase::closing && !options_.quiet)
                say(fmt::format("note: all ranks have ended well; waiting for {} to end (Ctrl-C ends it)", engine_.name));
        });
    loop_.after(clean      ? longest_wait
                : complete ? engine_patience
                           : engine_grace,
                [this, complete] {
                    if (phase_ != phase::closing) return;
                    if (complete) say(fmt::format("{} still runs although its ranks have ended: ending it", engine_.name));
                    end_engine(SIGTERM);
                });
}

void engine_supervisor::end_engine(int signal_number) {
    if (phase_ != phase::closing || known_.engine_status) return;
    ended_engine_ = true;
    if (signal_number == SIGTERM) cancel_step();
    ::kill(-engine_pid_, signal_number);
    ::kill(-engine_pid_, SIGCONT);
    if (signal_number == SIGKILL) return;
    loop_.after(engine_grace, [this] { end_engine(SIGKILL); });
}

/// What the engine started may outlive it: on nodes that do not answer, the scheduler itself must end it.
void engine_supervisor::cancel_step() {
    if (std::exchange(cancelled_, true) || engine_.cancel == nullptr) return;
    for (auto const& rank : ranks_) {
        if (rank.step.empty()) continue;
        auto const argv = engine_.cancel(rank.step);
        if (argv.empty()) return;
        try {
            auto const variables = environment::capture();
            cancel_pid_ = start_process({
                .path = find_program(argv.front(), variables, ""),
                .arguments = &argv,
                .variables = &variables,
            });
        } catch (error const& e) {
            say(fmt::format("cannot cancel step {}: {}", rank.step, e.what()));
        }
        return;
    }
}

/// The command dies with this process, and a scheduler may be slow to answer it.
void engine_supervisor::wait_for_cancel() {
    auto const end = event_loop::clock::now() + std::chrono::seconds(10);
    while (cancel_pid_ > 0 && event_loop::clock::now() < end) {
        if (::waitpid(cancel_pid_, nullptr, WNOHANG) != 0) break;
        timespec const pause{0, 20'000'000};
        ::nanosleep(&pause, nullptr);
    }
    cancel_pid_ = -1;
}

void engine_supervisor::finish() {
    if (phase_ == phase::done) return;
    phase_ = phase::done;
    wait_for_cancel();
    if (auto const late = judge_late_engine(known_); !failed_ && !ended_engine_ && late.ends()) {
        say("error: " + late.text);
        exit_code_ = late.exit_code;
    }
    for (auto& rank : ranks_) rank.link.flush(duration(0.2));
    drain_output();
    check_output();
    writer_.drain_briefly();
    loop_.stop();
}

/// Output that is lost otherwise than by a reader that went away is a failure of the run.
void engine_supervisor::check_output() {
    auto const fault = writer_.describe_fault();
    if (fault.empty() || failed_) return;
    exit_code_ = exit_code(errc::io);  // also where no rank is left to be stopped
    fail(fault, exit_code_);
}

/// A reader that does not read holds muster, as it would hold any program, but not against a request to end.
void engine_supervisor::drain_output() {
    if (failed_) return writer_.drain_briefly();
    writer_.drain_until([this] {
        auto const request = take_request_to_end(signals_.get());
        if (request) exit_code_ = 128 + *request;
        return request.has_value();
    });
}

}  // namespace muster
