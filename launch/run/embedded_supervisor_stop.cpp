// The embedded supervisor's second half: ending ranks, what is left of them, and the run.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/error.hpp"
#include "launch/observe/container_start.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/run/embedded_supervisor.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/session_dir.hpp"

namespace muster {

evidence const& embedded_supervisor::facts() {
    known_.lived = event_loop::clock::now() - start_;
    return known_;
}

/// Where a rank is to blame, what it wrote last is read first.
void embedded_supervisor::judge(std::function<verdict(evidence const&)> const& what) {
    if (failed_) return;
    auto judged = what(facts());
    if (judged.of_rank) {
        auto& rank = ranks_[static_cast<std::size_t>(judged.culprits.front().rank)];
        for (auto* stream : {&rank.err, &rank.out}) output_.read_for_now(*stream);
        known_[rank.who.rank].last_lines = rank.err.last_lines();
        judged = what(facts());
    }
    act_on(judged);
}

void embedded_supervisor::act_on(verdict const& judged) {
    if (judged.next == verdict::step::hold) {
        if (!judged.culprits.empty()) known_.suspect = judged.culprits.front().rank;
        if (!std::exchange(known_.deciding, true)) loop_.after(judged.patience, [this] { decide_cause(); });
    }
    if (!judged.ends()) return;
    failed_ = true;
    if (judged.of_rank && outcome_ != nullptr)
        outcome_->rank = judged.culprits.front().rank, outcome_->host = judged.culprits.front().host;
    if (!judged.text.empty()) say("error: " + judged.text);
    stop(judged.exit_code, SIGTERM);
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
    if (phase_ == phase::done || known_.deciding) return;
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

}  // namespace muster
