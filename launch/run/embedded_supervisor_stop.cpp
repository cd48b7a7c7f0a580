// The supervisor's second half: ending ranks, what is left of them, and the run.
#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/run/embedded_supervisor.hpp"
#include "launch/system/mpi_library.hpp"
#include "launch/system/process_tree.hpp"
#include "launch/system/session_dir.hpp"

namespace muster {

namespace {

constexpr std::size_t lines_shown = 8;
constexpr duration leftover_patience{0.2};
constexpr double drain_after_stop_s = 2;  ///< a reader that does not read must not hold a stopped run for ever

constexpr double drain_slice_s = 0.1;

std::string quote_lines(std::string_view text) {
    std::string quoted;
    for (auto const line : split(trim(text), '\n')) quoted += fmt::format("\n  | {}", line);
    return quoted;
}

}  // namespace

void supervisor::fail(rank_process& rank, std::string const& what, int code, std::string const& advice) {
    if (failed_) return;
    failed_ = true;
    for (auto* stream : {&rank.err, &rank.out}) {
        int const fd = stream->read_fd();
        stream->read_for_now(writer_);
        if (fd >= 0 && !stream->open()) loop_.unwatch(fd);
    }
    auto const lived = duration(event_loop::clock::now() - start_);
    std::string message = fmt::format("error: {} {}, {} after the start", name_of(rank), what, format_duration(lived));
    if (running_ > 0) message += fmt::format("; ending the other {}", running_ - (rank.running() ? 1 : 0));
    if (!advice.empty()) message += fmt::format("\n  {}", advice);
    if (auto const tail = rank.err.lines().tail(lines_shown); !tail.empty())
        message += "\n  the last it wrote on stderr:" + quote_lines(tail);
    say(message);
    stop(code, SIGTERM);
}

void supervisor::stop(int code, int signal_number) {
    if (phase_ != phase::running) return;
    phase_ = phase::stopping;
    exit_code_ = code;
    kill_at_ = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(options_.grace);
    signal_ranks(signal_number);
    signal_ranks(SIGCONT);  // a stopped process takes no signal
    if (signal_number == SIGINT)
        loop_.after(options_.grace / 2, [this] {
            if (phase_ == phase::stopping) signal_ranks(SIGTERM);
        });
    loop_.after(options_.grace, [this] {
        if (phase_ != phase::stopping || running_ == 0) return;
        say(fmt::format("{} ranks are still there {} after they were asked to end: killing them", running_,
                        format_duration(options_.grace)));
        kill_all();
    });
}

void supervisor::kill_all() {
    if (phase_ == phase::running) phase_ = phase::stopping;
    signal_ranks(SIGKILL);
    signal_descendants(SIGKILL);
}

/// To the whole process group of each rank, also where the rank itself is gone: its children may be there.
void supervisor::signal_ranks(int signal_number) noexcept {
    for (auto const& rank : ranks_)
        if (rank.pid > 0 && !rank.group_gone) ::kill(-rank.pid, signal_number);
}

void supervisor::on_ranks_gone() {
    if (phase_ == phase::done) return;
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

/// SIGTERM first; SIGKILL when they have had their moment and, in a run that was stopped, what is left of the grace: a program
/// below a wrapper script that SIGTERM ended at once may be saving its state.
void supervisor::end_leftovers(int signal_number) {
    if (phase_ != phase::leftovers) return;
    signal_descendants(signal_number);
    signal_descendants(SIGCONT);
    duration const grace_left = kill_at_ - event_loop::clock::now();
    loop_.after(signal_number == SIGTERM ? std::max(leftover_patience, grace_left) : leftover_patience,
                [this] { end_leftovers(SIGKILL); });
}

void supervisor::finish() {
    phase_ = phase::done;
    for (auto& rank : ranks_)
        for (auto* stream : {&rank.out, &rank.err}) {
            if (stream->open()) loop_.unwatch(stream->read_fd());
            stream->read_all(writer_);
            stream->flush_partial(writer_);
        }
    drain_output();
    judge_output();
    if (failed_) sweep_shared_memory(wall_start_);
    loop_.stop();
}

/// Output that is lost otherwise than by a reader that went away is a failure of the run.
void supervisor::judge_output() {
    int const fault = writer_.fault();
    if (fault == 0 || failed_) return;
    failed_ = true;
    say(fmt::format("error: cannot write the ranks' output: {}; free space or send it elsewhere", std::strerror(fault)));
    exit_code_ = exit_code(errc::io);
    stop(exit_code_, SIGTERM);
    writer_.drain(drain_after_stop_s);
}

/// A reader that does not read holds muster, as it would hold any program, but not against a request to end.
void supervisor::drain_output() {
    if (failed_) {
        writer_.drain(drain_after_stop_s);
        return;
    }
    while (!writer_.drain(drain_slice_s)) {
        signalfd_siginfo info{};
        while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
            if (int const s = static_cast<int>(info.ssi_signo); s == SIGINT || s == SIGTERM || s == SIGHUP || s == SIGQUIT) {
                exit_code_ = 128 + s;
                return;
            }
    }
}

/// What to say of a rank that ended well but never met its world; empty if it is fine. Either it uses MPI, or others do and wait
/// for it.
std::string supervisor::singleton_fault(rank_process const& rank) {
    if (options_.allow_singletons || rank.connected || ranks_.size() < 2) return {};
    if (!linked_mpi_) linked_mpi_ = pmix::links_mpi(executable_).value_or("");
    std::string const& library = rank.mpi_library.empty() ? *linked_mpi_ : rank.mpi_library;
    if (!library.empty())
        return fmt::format(
            "came up as a singleton: it uses {} but never met the other {} ranks, so its result is one of a world of size 1",
            library, ranks_.size() - 1);
    auto const met = std::count_if(ranks_.begin(), ranks_.end(), [](rank_process const& r) { return r.connected; });
    if (met == 0) return {};
    return fmt::format(
        "came up as a singleton or without MPI: it exited with code 0 and never met its world, for which {} of {} ranks wait",
        met, ranks_.size());
}

/// A rank that ended before the first one met its world is judged now.
void supervisor::judge_ended_ranks() {
    for (auto& rank : ranks_)
        if (rank.wait_status && *rank.wait_status == 0)
            if (auto const fault = singleton_fault(rank); !fault.empty()) return fail_singleton(rank, fault);
}

void supervisor::fail_singleton(rank_process& rank, std::string const& fault) {
    fail(rank, fault, exit_code(errc::singleton),
         "use an MPI that speaks PMIx or PMI-1 (Open MPI, MPICH) on every rank, or --allow-singletons if that is meant");
}

}  // namespace muster
