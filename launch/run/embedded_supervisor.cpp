#include "launch/run/embedded_supervisor.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "launch/system/mpi_library.hpp"
#include "launch/system/process_tree.hpp"

namespace muster {

namespace {

constexpr duration partial_patience{0.3};
/// When ranks that have not connected are looked at for an MPI library that started alone.
constexpr std::array mpi_looks{duration(0.5), duration(2), duration(5), duration(15)};

}  // namespace

supervisor::supervisor(run_options const& options, std::string executable,
                       std::optional<std::chrono::system_clock::time_point> ends_at, int guardian_fd)
    : signals_(take_signals(launcher_signals(), "the launcher")),
      options_(options),
      executable_(std::move(executable)),
      ends_at_(ends_at),
      guardian_fd_(guardian_fd),
      wall_start_(std::time(nullptr)),
      start_(event_loop::clock::now()) {
    ::signal(SIGPIPE, SIG_IGN);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of ranks become our children, so that none is missed
    loop_.watch_readable(signals_.get(), [this] { on_signal(); });
    loop_.watch_readable(guardian_fd_, [this] { on_guardian_gone(); });
    loop_.watch_readable(writer_.event_fd(), [this] { on_writer_event(); });
}

supervisor::~supervisor() = default;

void supervisor::add(rank_process rank) {
    rank.out.close_child_end();
    rank.err.close_child_end();
    ranks_.push_back(std::move(rank));
    ++running_;
}

void supervisor::start_failed(std::string const& message, int code) {
    say(fmt::format("error: {}", message));
    failed_ = true;
    stop(code, SIGTERM);
}

int supervisor::run(pmix::server& pmix_server, pmix::pmi1_server& pmi1_server) {
    pmix_ = &pmix_server;
    pmi1_ = &pmi1_server;
    for (auto& rank : ranks_) watch_streams(rank);
    loop_.watch_readable(pmix_->event_fd(), [this] { on_pmi_events(pmix_->poll()); });
    loop_.watch_readable(pmi1_->event_fd(), [this] { on_pmi_events(pmi1_->poll()); });
    if (options_.timeout) loop_.after(*options_.timeout, [this] { on_timeout(); });
    if (options_.start_timeout) loop_.after(*options_.start_timeout, [this] { on_start_timeout(); });
    last_output_ = event_loop::clock::now();
    if (options_.idle_timeout) loop_.after(*options_.idle_timeout, [this] { check_idle(); });
    if (options_.signal_before_end && ends_at_) set_early_signal();
    if (ranks_.size() > 1)
        for (auto const when : mpi_looks) loop_.after(when, [this] { look_for_mpi(); });
    if (running_ == 0) on_ranks_gone();
    if (phase_ != phase::done) loop_.run();
    return exit_code_;
}

void supervisor::on_signal() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        int const s = static_cast<int>(info.ssi_signo);
        if (s == SIGCHLD) {
            on_child();
        } else if (requests_.is_repeat(s)) {
            continue;
        } else if (s == SIGTSTP) {
            signal_ranks(SIGSTOP);
            ::raise(SIGSTOP);
        } else if (s == SIGCONT || !ends_the_run(s)) {
            signal_ranks(s);
        } else if (phase_ == phase::running) {
            if (s != SIGTERM || !options_.quiet) say(fmt::format("got SIG{}: ending {} ranks", ::sigabbrev_np(s), running_));
            failed_ = true;
            stop(128 + s, s);
        } else {
            kill_all();  // a second time: no more patience
        }
    }
}

void supervisor::on_pmi_events(std::vector<pmix::server_event> const& events) {
    for (auto const& event : events) on_pmi_event(event);
}

void supervisor::on_pmi_event(pmix::server_event const& event) {
    using kind = pmix::server_event::kind;
    auto* const rank =
        event.rank >= 0 && event.rank < static_cast<int>(ranks_.size()) ? &ranks_[static_cast<std::size_t>(event.rank)] : nullptr;
    if (event.what == kind::log) {
        writer_.write(STDERR_FILENO, event.text);
    } else if (rank == nullptr) {
        spdlog::debug("PMI event of rank {}, which is not of this job", event.rank);
    } else if (event.what == kind::connected) {
        rank->connected = true;
        rank->finalized = false;  // a script may run one MPI program after the other
        judge_ended_ranks();
        if (start_timeout_due_) {
            start_timeout_due_ = false;
            loop_.after(*options_.start_timeout, [this] { on_start_timeout(); });
        }
    } else if (event.what == kind::finalized) {
        rank->finalized = true;
    } else {
        int const code = event.code & 0xff;
        auto const text = event.text.empty() || event.text == "N/A" ? std::string() : fmt::format(": {}", event.text);
        fail(*rank, fmt::format("aborted the job with code {} (MPI_Abort or PMIx_Abort){}", event.code, text),
             code == 0 ? 1 : code);
    }
}

void supervisor::on_child() {
    // What ended is gathered first and judged after the PMI events: a rank's own events were queued before it ended.
    std::vector<rank_process*> ended;
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0)
        for (auto& rank : ranks_)
            if (rank.pid == pid && !rank.wait_status) {
                rank.wait_status = status;
                rank.group_gone = ::kill(-pid, 0) != 0;  // its number may become somebody else's
                ended.push_back(&rank);
                --running_;
            }
    bool const childless = pid < 0 && errno == ECHILD;
    on_pmi_events(pmix_->poll());
    on_pmi_events(pmi1_->poll());
    for (auto* rank : ended) on_rank_end(*rank);
    if (phase_ == phase::leftovers ? childless : running_ == 0) on_ranks_gone();
}

void supervisor::on_rank_end(rank_process& rank) {
    int const status = *rank.wait_status;
    pmix_->report_exit(rank.who.rank, status);
    if (WIFSIGNALED(status)) {
        fail(rank, describe_end(status), shell_code(status),
             WTERMSIG(status) == SIGKILL ? "nobody here sent it: often the kernel, out of memory (see dmesg)" : "");
    } else if (WEXITSTATUS(status) != 0) {
        fail(rank, describe_end(status), WEXITSTATUS(status));
    } else if (rank.connected && !rank.finalized) {
        fail(rank, "exited with code 0 but without MPI_Finalize, so the others would wait for it for ever", 1,
             "call MPI_Finalize on every path");
    } else if (auto const fault = singleton_fault(rank); !fault.empty()) {
        fail_singleton(rank, fault);
    }
}

void supervisor::on_guardian_gone() {
    loop_.unwatch(guardian_fd_);
    failed_ = true;
    exit_code_ = 128 + SIGKILL;
    kill_all();
}

void supervisor::on_timeout() {
    if (phase_ != phase::running) return;
    say(fmt::format("error: still running after --timeout {}: ending {} ranks", format_duration(*options_.timeout), running_));
    failed_ = true;
    stop(exit_code(errc::timeout), SIGTERM);
}

void supervisor::check_idle() {
    if (phase_ != phase::running) return;
    duration const idle = event_loop::clock::now() - last_output_;
    if (idle < *options_.idle_timeout) {
        loop_.after(*options_.idle_timeout - idle, [this] { check_idle(); });
        return;
    }
    say(fmt::format("error: no rank has written anything for {} (--idle-timeout): ending {} ranks", format_duration(idle),
                    running_));
    failed_ = true;
    stop(exit_code(errc::timeout), SIGTERM);
}

void supervisor::set_early_signal() {
    duration const left = *ends_at_ - std::chrono::system_clock::now() - options_.signal_before_end->before;
    loop_.after(std::max(left, duration(0)), [this] {
        if (phase_ != phase::running) return;
        int const number = options_.signal_before_end->number;
        say(fmt::format("{} before the job's time is up: SIG{} to {} ranks", format_duration(options_.signal_before_end->before),
                        ::sigabbrev_np(number), running_));
        signal_ranks(number);
    });
}

void supervisor::on_start_timeout() {
    if (phase_ != phase::running) return;
    std::string missing;
    int connected = 0;
    for (auto const& rank : ranks_) {
        if (rank.connected) ++connected;
        if (!rank.connected && rank.running()) missing += (missing.empty() ? "" : "; ") + name_of(rank);
    }
    if (connected == 0) {  // no MPI program, or none that has come so far: asked again once one has
        start_timeout_due_ = true;
        return;
    }
    if (missing.empty()) return;
    say(
        fmt::format("error: {} of {} ranks have initialised MPI after --start-timeout {}; missing: {}; see what they do with: "
                    "gdb -p PID, or py-spy dump",
                    connected, ranks_.size(), format_duration(*options_.start_timeout), missing));
    failed_ = true;
    stop(exit_code(errc::timeout), SIGTERM);
}

/// A rank of an interpreter (python with mpi4py) shows what it is only at run time.
void supervisor::look_for_mpi() {
    for (auto& rank : ranks_)
        if (phase_ == phase::running) look_for_mpi(rank);
}

void supervisor::look_for_mpi(rank_process& rank) {
    if (rank.running() && !rank.connected && rank.mpi_library.empty()) rank.mpi_library = pmix::maps_mpi(rank.pid).value_or("");
}

void supervisor::watch_streams(rank_process& rank) {
    for (auto* stream : {&rank.out, &rank.err})
        if (stream->open()) loop_.watch_readable(stream->read_fd(), [this, &rank, stream] { on_readable(rank, *stream); });
}

void supervisor::on_readable(rank_process& rank, rank_stream& stream) {
    int const fd = stream.read_fd();
    last_output_ = event_loop::clock::now();
    if (!rank.spoke && ranks_.size() > 1) {  // what speaks of a world of its own has MPI loaded now
        rank.spoke = true;
        look_for_mpi(rank);
    }
    if (!stream.read_some(writer_)) loop_.unwatch(fd);
    if (!partial_flush_pending_ && stream.awaits_flush()) {
        partial_flush_pending_ = true;
        loop_.after(partial_patience, [this] { flush_partials(); });
    }
    if (writer_.congested() && !paused_output_) {
        paused_output_ = true;
        for (auto& each : ranks_)
            for (auto* s : {&each.out, &each.err})
                if (s->open()) loop_.unwatch(s->read_fd());
    }
}

/// On a terminal a prompt or a progress bar should show although its line is not complete.
void supervisor::flush_partials() {
    partial_flush_pending_ = false;
    bool all = true;
    for (auto& rank : ranks_)
        for (auto* stream : {&rank.out, &rank.err}) all = stream->flush_stale_partial(writer_) && all;
    if (all) return;
    partial_flush_pending_ = true;
    loop_.after(partial_patience, [this] { flush_partials(); });
}

void supervisor::on_writer_event() {
    writer_.clear_event();
    judge_output();
    if (paused_output_ && !writer_.congested()) {
        paused_output_ = false;
        for (auto& rank : ranks_) watch_streams(rank);
    }
    if (writer_.broken(STDOUT_FILENO))  // as in a pipeline: whoever writes on gets SIGPIPE
        for (auto& rank : ranks_)
            if (rank.out.open()) {
                loop_.unwatch(rank.out.read_fd());
                rank.out.close();
            }
}

void supervisor::say(std::string const& line) {
    writer_.write(STDERR_FILENO, fmt::format("muster: {}\n", line));
}

}  // namespace muster
