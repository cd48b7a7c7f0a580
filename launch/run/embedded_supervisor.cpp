#include "launch/run/embedded_supervisor.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/watch/job_end.hpp"

namespace muster {

namespace {

/// Ranks end together, and mostly the run with them.
constexpr duration forget_after{0.05};

/// When ranks that have not connected are searched for an MPI library that started alone.
/// Closer than any MPI_Init of Open MPI is long, and then ever further apart.
constexpr std::array mpi_checks{duration(0.1), duration(0.2), duration(0.35), duration(0.5),
                                duration(1),   duration(2),   duration(5),    duration(15)};

}  // namespace

embedded_supervisor::embedded_supervisor(run_context const& run)
    : signals_(take_signals(launcher_signals(), "the launcher")),
      options_(run.options),
      given_(run.given),
      inherited_(run.inherited),
      outcome_(run.outcome),
      output_(loop_, writer_),
      deadlines_(loop_, run.options, run.given.ends_at,
                 {[this] { return phase_ == phase::running; }, [this] { return static_cast<std::size_t>(running_); },
                  [this](std::string const& reason) { expire(reason); },
                  [this](std::string const& note, int signal_number) {
                      say(note);
                      if (is_notice(signal_number))
                          notify_descendants(signal_number, noticed::that_catch);
                      else
                          signal_ranks(signal_number);
                  }}),
      guardian_fd_(run.guardian_fd),
      wall_start_(std::time(nullptr)),
      start_(event_loop::clock::now()) {
    known_.job_id = given_.job_id;
    known_.in_job = given_.fixed;
    known_.allow_singletons = options_.allow_singletons;
    known_.started = true;
    ::signal(SIGPIPE, SIG_IGN);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of ranks become our children, so that none is missed
    loop_.watch_readable(signals_.get(), [this] { on_signal(); });
    loop_.watch_readable(guardian_fd_, [this] { on_guardian_gone(); });
    loop_.watch_readable(writer_.event_fd(), [this] { on_writer_event(); });
}

embedded_supervisor::~embedded_supervisor() = default;

void embedded_supervisor::add(child_rank rank) {
    rank.out.close_child_end();
    rank.err.close_child_end();
    known_.hosts = {rank.who.host};
    auto& known = known_.ranks.emplace_back(rank_evidence{.rank = rank.who.rank, .now = rank_evidence::state::running});
    if (auto const& gpu = rank.place.device) known.gpu_index = gpu->index, known.gpu_uuid = gpu->uuid;
    ranks_.push_back(std::move(rank));
    ++running_;
}

void embedded_supervisor::start_failed(std::string const& message, int code) {
    say(fmt::format("error: {}", message));
    failed_ = true;
    stop(code, SIGTERM);
}

int embedded_supervisor::run(pmix::server& pmix_server, pmix::pmi1_server& pmi1_server, int master_port) {
    master_port_ = master_port;
    // On a terminal the lines of one or two ranks are still to be seen.
    known_.quotes = ranks_.size() > 2 || ::isatty(STDERR_FILENO) != 1;
    pmix_ = &pmix_server;
    pmi1_ = &pmi1_server;
    for (auto& rank : ranks_)
        for (auto* stream : {&rank.out, &rank.err}) output_.add(*stream, [this, &rank, stream] { on_output(rank, *stream); });
    loop_.watch_readable(pmix_->event_fd(), [this] { poll_pmix(); });
    loop_.watch_readable(pmi1_->event_fd(), [this] { on_pmi_events(pmi1_->poll()); });
    if (options_.start_timeout) loop_.after(*options_.start_timeout, [this] { on_start_timeout(); });
    deadlines_.start();
    deadlines_.start_early_signal();
    if (ranks_.size() > 1 && !options_.quiet) loop_.after(meeting_patience, [this] { note_unmet(); });
    if (ranks_.size() > 1)
        for (auto const when : mpi_checks) loop_.after(when, [this] { detect_mpi(); });
    if (running_ == 0) on_ranks_gone();
    if (phase_ != phase::done) loop_.run();
    return exit_code_;
}

void embedded_supervisor::on_signal() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        int const sent = static_cast<int>(info.ssi_signo);
        int const s = meaning_of(sent, given_);
        if (s == SIGCHLD) {
            on_child();
        } else if (requests_.is_repeat(s)) {
            continue;
        } else if (s == SIGTSTP) {
            signal_ranks(SIGSTOP);
            ::raise(SIGSTOP);
        } else if (s == SIGUSR2) {
            show_ranks({});
            notify_descendants(s, noticed::that_catch);
        } else if (s == SIGCONT || !ends_the_run(s)) {
            signal_ranks(s);
        } else if (phase_ == phase::running) {
            if (s != SIGTERM || !options_.quiet)
                say(fmt::format("got SIG{}: ending {}", ::sigabbrev_np(sent),
                                count_of_ranks(static_cast<std::size_t>(running_))));
            failed_ = true;
            known_.deciding = false;
            stop(128 + s, s);
            if (s == SIGTERM) explain_end();
            if (s == SIGTERM && given_.scheduler == scheduler_kind::flux) requests_.take_as_known(s);
            requests_.extend(s);                 // the scheduler may have been slow to answer
            if (running_ == 0) on_ranks_gone();  // they died of the same signal
        } else {
            kill_all();  // a second request: the grace is over
        }
    }
}

/// The first rank that connects starts the library's server, which may fail.
void embedded_supervisor::poll_pmix() try { on_pmi_events(pmix_->poll()); } catch (error const& e) {
    if (!failed_) start_failed(e.what(), exit_code(e.code()));
}

void embedded_supervisor::on_pmi_events(std::vector<pmix::server_event> const& events) {
    for (auto const& event : events) on_pmi_event(event);
}

void embedded_supervisor::on_pmi_event(pmix::server_event const& event) {
    using kind = pmix::server_event::kind;
    auto* const rank = known_.is_rank(event.rank) ? &known_[event.rank] : nullptr;
    if (event.what == kind::log) {
        writer_.write(STDERR_FILENO, without_controls(event.text));
    } else if (rank == nullptr) {
        spdlog::debug("PMI event of rank {}, which is not of this job", event.rank);
    } else if (event.what == kind::connected) {
        rank->connected = true;
        rank->finalized = rank->wait_status.has_value();  // a script may run one MPI program after the other
        judge(judge_world);
        if (start_timeout_due_) {
            start_timeout_due_ = false;
            loop_.after(*options_.start_timeout, [this] { on_start_timeout(); });
        }
    } else if (event.what == kind::finalized) {
        rank->finalized = true;
    } else {
        if (known_.deciding || known_.abort) return;
        known_.abort = evidence::abort_word{.rank = event.rank,
                                            .code = event.code,
                                            .by = "MPI_Abort or PMIx_Abort",
                                            .said = event.text == "N/A" ? "" : without_controls(event.text)};
        judge(judge_cause);
    }
}

void embedded_supervisor::on_child() {
    // What ended is gathered first and decided on after the PMI events: a rank's own events were queued before it ended.
    std::vector<child_rank*> ended;
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0)
        for (auto& rank : ranks_)
            if (auto& known = known_[rank.who.rank]; rank.pid == pid && !known.wait_status) {
                known.wait_status = status;
                known.now = rank_evidence::state::ended;
                rank.group_gone = ::kill(-pid, 0) != 0;  // its number may be used again
                ended.push_back(&rank);
                --running_;
            }
    bool const childless = pid < 0 && errno == ECHILD;
    poll_pmix();
    on_pmi_events(pmi1_->poll());
    for (auto* rank : ended) on_rank_end(*rank);
    if (phase_ == phase::leftovers ? childless : running_ == 0) on_ranks_gone();
}

void embedded_supervisor::on_rank_end(child_rank& rank) {
    auto& known = known_[rank.who.rank];
    pmix_->report_exit(known.rank, *known.wait_status);
    if (!std::exchange(forget_due_, true))
        loop_.after(forget_after, [this] {
            forget_due_ = false;
            pmix_->forget_ended();
        });
    known.memory = memory_verdict_of(*known.wait_status, memory_);
    known.settled = true;
    known.left_early = known.ended_well();
    if (rank.mpi.uses_mpi_elsewhere()) known.mpi_elsewhere = rank.mpi.library;
    known_.reader_gone = writer_.broken(STDOUT_FILENO);
    judge([&](evidence const& now) { return judge_end(now, known.rank); });
    if (known.ended_well() && !failed_ && running_ > 0 && !known.finalized) await_others(known.rank);
}

void embedded_supervisor::on_guardian_gone() {
    loop_.unwatch(guardian_fd_);
    failed_ = true;
    exit_code_ = 128 + SIGKILL;
    kill_all();
}

/// A rank of an interpreter (python with mpi4py) shows what it is only at run time.
void embedded_supervisor::detect_mpi() {
    for (auto& rank : ranks_)
        if (phase_ == phase::running) detect_mpi(rank);
}

void embedded_supervisor::detect_mpi(child_rank& rank) {
    if (auto const& known = known_[rank.who.rank]; !known.running() || known.connected || rank.mpi.uses_mpi_elsewhere()) return;
    rank.mpi = look_for_mpi(rank.pid);
    rank.looked_at = event_loop::clock::now();
}

void embedded_supervisor::on_output(child_rank& rank, rank_stream& stream) {
    rank.last_written = &stream;
    rank.last_output = event_loop::clock::now();
    deadlines_.note_output();
    if (ranks_.size() < 2) return;
    // A rank that prints the size of its world has initialised MPI by now; one that has MPI may do so later.
    bool const again = !rank.mpi.library.empty() && rank.last_output - rank.looked_at > mpi_look_again_after;
    if (!std::exchange(rank.spoke, true) || again) detect_mpi(rank);
}

void embedded_supervisor::say(std::string const& line) {
    constexpr std::string_view prefix = "error: ";
    if (outcome_ != nullptr && outcome_->cause.empty() && line.starts_with(prefix))
        outcome_->cause = line.substr(prefix.size(), line.find('\n') - prefix.size());
    writer_.write(STDERR_FILENO, fmt::format("muster: {}\n", line));
}

}  // namespace muster
