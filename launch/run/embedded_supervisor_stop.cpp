// The embedded supervisor's second half: ending ranks, what is left of them, and the run.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/error.hpp"
#include "launch/observe/container_start.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/run/embedded_supervisor.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/session_dir.hpp"

namespace muster {

void embedded_supervisor::fail(child_rank& rank, std::string const& what, int code, std::string const& advice) {
    if (failed_ || suspect_ >= 0) return;  // what comes behind a held end is its consequence
    failed_ = true;
    if (outcome_ != nullptr) outcome_->rank = rank.who.rank, outcome_->host = rank.who.host;
    for (auto* stream : {&rank.err, &rank.out}) output_.read_for_now(*stream);
    // On a terminal the lines of one or two ranks are still to be seen.
    bool const quotes = ranks_.size() > 2 || ::isatty(STDERR_FILENO) != 1;
    say("error: " + describe(failure_report{name_of(rank), what, duration(event_loop::clock::now() - start_),
                                            static_cast<std::size_t>(running_ - (rank.running() ? 1 : 0)), advice,
                                            list_early_ends(), quotes ? rank.err.last_lines() : std::string()}));
    stop(code, SIGTERM);
}

void embedded_supervisor::stop(int code, int signal_number) {
    if (phase_ != phase::running) return;
    phase_ = phase::stopping;
    exit_code_ = code;
    grace_ends_ = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(options_.grace);
    signal_opened_containers(loop_, signal_number, *grace_ends_);  // before what is to end is asked to
    signal_ranks(signal_number);
    signal_ranks(SIGCONT);  // a stopped process takes no signal
    auto const terminate = [this] {
        if (phase_ == phase::stopping) signal_ranks(SIGTERM);
    };
    set_grace_timers(loop_, signal_number, options_.grace, terminate, [this] {
        if (phase_ != phase::stopping || running_ == 0) return;
        say(fmt::format("killing {} that did not end within {} (--grace)", count_of_ranks(static_cast<std::size_t>(running_)),
                        format_duration(options_.grace)));
        kill_all();
    });
}

void embedded_supervisor::kill_all() {
    if (phase_ == phase::running) phase_ = phase::stopping;
    signal_ranks(SIGKILL);
    signal_descendants(SIGKILL);
}

/// To the whole process group of each rank, also where the rank itself is gone: its children may be there.
void embedded_supervisor::signal_ranks(int signal_number) noexcept {
    for (auto const& rank : ranks_)
        if (rank.pid > 0 && !rank.group_gone) ::kill(-rank.pid, signal_number);
}

void embedded_supervisor::on_ranks_gone() {
    if (phase_ == phase::done || suspect_ >= 0) return;
    int status = 0;
    while (::waitpid(-1, &status, WNOHANG) > 0) {
    }
    if (::waitpid(-1, &status, WNOHANG) < 0 && errno == ECHILD) return finish();
    if (phase_ == phase::leftovers) return;
    // Processes that ranks left behind, in their own sessions or not: a moment to end by themselves, unless the run failed.
    bool const failed = phase_ == phase::stopping;
    phase_ = phase::leftovers;
    if (failed)
        end_leftovers(SIGTERM);
    else
        loop_.after(leftover_patience, [this] { end_leftovers(SIGTERM); });
}

void embedded_supervisor::end_leftovers(int signal_number) {
    if (phase_ != phase::leftovers) return;
    end_descendants(signal_number);
    loop_.after(wait_before_kill(signal_number, grace_ends_, event_loop::clock::now()), [this] { end_leftovers(SIGKILL); });
}

void embedded_supervisor::finish() {
    phase_ = phase::done;
    output_.finish();
    drain_output();
    check_output();
    for (auto const& rank : ranks_)
        if (exit_code_ == 0 && !(rank.out.file_fault().empty() && rank.err.file_fault().empty()))
            exit_code_ = exit_code(errc::io);
    if (failed_) sweep_shared_memory(wall_start_);
    loop_.stop();
}

/// Output that is lost otherwise than by a reader that went away is a failure of the run.
void embedded_supervisor::check_output() {
    auto const fault = writer_.describe_fault();
    if (fault.empty() || failed_) return;
    failed_ = true;
    say("error: " + fault);
    exit_code_ = exit_code(errc::io);
    stop(exit_code_, SIGTERM);
    writer_.drain_briefly();
}

void embedded_supervisor::on_writer_event() {
    writer_.clear_event();
    check_output();
    output_.resume();
    if (writer_.broken(STDOUT_FILENO)) output_.close_streams_to(STDOUT_FILENO);
}

/// A reader that does not read holds muster, as it would hold any program, but not against a request to end.
void embedded_supervisor::drain_output() {
    if (failed_) return writer_.drain_briefly();
    writer_.drain_until([this] {
        auto const request = take_request_to_end(signals_.get());
        if (request) exit_code_ = 128 + *request;
        return request.has_value();
    });
}

/// What to say of a rank that ended well but never met its world; empty if it is fine. Either it has initialised MPI, or others have and wait
/// for it.
std::string embedded_supervisor::singleton_fault(child_rank const& rank) const {
    if (options_.allow_singletons || rank.connected || ranks_.size() < 2) return {};
    if (rank.mpi.uses_mpi_elsewhere())
        return fmt::format(
            "came up as a singleton: it uses {} but never connected to the other {} ranks, so its result is that of one rank "
            "alone",
            rank.mpi.library, ranks_.size() - 1);
    // One that has left its world, as muster's own collectives do at once, waits for nobody in it.
    auto const met = std::count_if(ranks_.begin(), ranks_.end(), [](child_rank const& r) { return r.connected && !r.finalized; });
    if (met == 0) return {};
    return never_met_mpi(static_cast<std::size_t>(met), ranks_.size());
}

/// A rank that ended before the first one met its world is decided on now.
void embedded_supervisor::check_ended_ranks() {
    for (auto& rank : ranks_)
        if (rank.wait_status && *rank.wait_status == 0)
            if (auto const fault = singleton_fault(rank); !fault.empty()) return fail_singleton(rank, fault);
}

void embedded_supervisor::fail_singleton(child_rank& rank, std::string const& fault) {
    fail(rank, fault, exit_code(errc::singleton), std::string(singleton_advice()));
}

}  // namespace muster
