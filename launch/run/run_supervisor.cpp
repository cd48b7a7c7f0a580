#include "launch/run/run_supervisor.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/remote/host_ranks.hpp"
#include "launch/samples/metric_line.hpp"
#include "launch/system/signals.hpp"
#include "launch/watch/failure_report.hpp"
#include "launch/watch/job_end.hpp"

namespace muster {

namespace {

constexpr duration longest_after_second_request{0.5};

}  // namespace

run_supervisor::run_supervisor(run_context const& run)
    : signals_(take_signals(launcher_signals(), "the launcher")),
      run_(run),
      options_(run.options),
      deadlines_(loop_, run.options, run.given.ends_at, run.life.age(),
                 {[this] { return active(); }, [this] { return ranks_->known().running(); },
                  [this](std::string const& reason) { expire(reason); },
                  [this](std::string const& when, int signal_number) { warn_ranks(when, signal_number); }}),
      last_look_(loop_, run.given.ends_at,
                 {[this] { return phase_ == run_phase::running; }, [this](auto then) { ranks_->inspect(std::move(then)); }}),
      hosts_(
          loop_, run,
          {[this] { return phase_ == run_phase::running && !failed_; },
           [this](auto const& hosts) { return ranks_->take_hosts(hosts); },
           [this](int number, auto const& tell) { send_notice(number, tell); }, [this](std::string const& line) { say(line); }}) {
    if (options_.is_elastic() || !options_.lives_file.empty()) {
        writer_.watch_for("", [this](auto) { run_.outcome.output_s = seconds_now(); });
        writer_.watch_for(std::string(metric_mark), [this](auto) { run_.outcome.metric_s = seconds_now(); });
        writer_.watch_for(std::string(checkpoint_mark),
                          [this](auto behind) { run_.outcome.saved_step = parse_checkpoint_step(behind).value_or(-1); });
    }
    ::signal(SIGPIPE, SIG_IGN);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of ranks become our children, so that we miss none
}

int run_supervisor::run(rank_group& ranks) {
    ranks_ = &ranks;
    auto& known = ranks.known();
    // The lines of one or two ranks are still visible on a terminal.
    known.quotes = known.ranks.size() > 2 || ::isatty(STDERR_FILENO) != 1;
    meeting_.emplace(loop_, options_, known,
                     meeting_watch::supervision{[this] { return phase_ == run_phase::running && !failed_; },
                                                [this](rank_group::rows_taker then) { ranks_->inspect(std::move(then)); },
                                                [this](std::string const& reason) { expire(reason); },
                                                [this](std::string const& line) { say(line); }});
    stops_.emplace(
        loop_, known,
        stop_watch::supervision{[this] { return phase_ == run_phase::running && !failed_; },
                                [this](auto const& whom, auto then) { ranks_->look_at_stopped(whom, std::move(then)); },
                                [this](int rank) {
                                    ranks_->known()[rank].killed_as_stopped = true;
                                    ranks_->kill_one(rank);
                                },
                                [this](std::string const& line) { say(line); }});
    loop_.watch_readable(signals_.get(), [this] { on_signal(); });
    loop_.watch_readable(run_.guardian_fd, [this] { on_guardian_gone(); });
    loop_.watch_readable(writer_.event_fd(), [this] { on_writer_event(); });
    if (known.started) phase_ = run_phase::running;
    if (known.started) run_.outcome.started_s = seconds_now();
    ranks.start();
    deadlines_.start();
    if (phase_ == run_phase::running) watch_run();
    close_if_over();
    if (phase_ != run_phase::done) loop_.run();
    if (options_.is_elastic()) note_lost_hosts(nodes_of(known.stuck));
    return exit_code_;
}

void run_supervisor::watch_run() {
    deadlines_.start_early_signal();  // earlier, no rank would handle it
    if (run_.asks_hosts != nullptr) hosts_.start();
    meeting_->start();
    if (run_.given.fixed && !options_.quiet) last_look_.start();
    if (options_.is_elastic()) stops_->start();
}

// ------------------------------------------------------------------------------------------------ from the ranks

void run_supervisor::on_ready() {
    phase_ = run_phase::running;
    ranks_->known().started = true;
    run_.outcome.started_s = seconds_now();
    start_ = event_loop::clock::now();
    deadlines_.note_output();
    ranks_->go();
    watch_run();
}

void run_supervisor::on_rank_end(int rank, bool others_go_on) {
    judge([=](evidence const& known) { return judge_member_end(known, rank, others_go_on); });
    if (!failed_) meeting_->on_rank_end(rank);
}

void run_supervisor::on_world() {
    if (phase_ == run_phase::running) judge(judge_world);
    meeting_->on_meeting();
}

/// Ends like a program whose output goes to head: without a message.
void run_supervisor::on_reader_gone() {
    if (!active()) return;
    if (options_.verbose)
        say(fmt::format("nobody reads standard output any more: ending {}", count_of_ranks(ranks_->known().running())));
    act_on(blame_run(failure_cause::reader_gone, {}, 128 + SIGPIPE));
}

// ------------------------------------------------------------------------------------------------ who is to blame

evidence const& run_supervisor::facts() {
    ranks_->known().lived = event_loop::clock::now() - start_;
    return ranks_->known();
}

/// If a rank is to blame, its last lines are read first.
void run_supervisor::judge(std::function<verdict(evidence const&)> const& what) {
    if (failed_) return;
    auto judged = what(facts());
    if (judged.of_rank) {
        ranks_->read_last_lines(judged.culprits.front().rank);
        judged = what(facts());
    }
    if (judged.next == verdict::step::ask_scheduler) return decide();
    act_on(judged);
}

/// This is the only place where a verdict leads to actions.
void run_supervisor::act_on(verdict const& first) {
    if (failed_) return;
    if (first.next == verdict::step::hold) {
        if (hold_end(ranks_->known(), first)) plan_decision(first.patience);
        return;
    }
    if (!first.ends() || go_on_in_place(first)) return;
    auto const judged = blame_for_end(ranks_->known(), lost_, first);
    failed_ = true;
    if (judged.of_rank) {
        culprit_ = judged.culprits.front().rank;
        run_.outcome.rank = ranks_->known()[culprit_].shown();
        run_.outcome.host = judged.culprits.front().host;
    }
    if (options_.is_elastic()) note_failure(judged);
    if (is_from_outside(judged.cause) || (judged.of_rank && is_from_outside(ranks_->known()[culprit_])))
        run_.outcome.from_outside = true;
    if (judged.cause == failure_cause::node) {
        run_.outcome.lost_node = true;
        note_lost_hosts(nodes_of(judged.ranks_to_blame()));
    }
    if (judged.gives_up) give_up(judged.culprits);
    if (!judged.text.empty()) say("error: " + judged.text);
    if (judged.cause == failure_cause::job_end) explain_time_limit_to_user();
    if (judged.cause == failure_cause::job_end) show_last_look();
    stop(judged.exit_code, SIGTERM);
    close_if_over();
}

/// Handles lost ranks whose others form their world anew.
bool run_supervisor::go_on_in_place(verdict const& judged) {
    if (judged.culprits.empty() || !ranks_->goes_on_without(judged)) return false;
    auto& known = ranks_->known();
    say_loss(describe_loss(known, judged));
    if (!lost_) lost_s_ = seconds_now();
    note_loss(known, lost_, judged);
    if (judged.cause == failure_cause::node) note_lost_hosts(nodes_of(judged.ranks_to_blame()));
    return true;
}

void run_supervisor::say_loss(std::string const& what) {
    auto const running = ranks_->known().running();
    say(fmt::format("note: {}; {} on in place", what, running == 1 ? "1 rank goes" : count_of_ranks(running) + " go"));
}

void run_supervisor::on_generation_end() {
    if (!lost_) lost_s_ = seconds_now();
    if (note_held(ranks_->known(), lost_)) say_loss(lost_->what);
}

void run_supervisor::on_generation(generation const& now, std::string const& why) {
    auto& outcome = run_.outcome;
    double const begun = seconds_now();
    auto const& before = run_.present();
    bool const leave = ranks_->known().count([](auto const& one) { return one.left_out() && one.running(); }) > 0;
    bool const by_hosts = options_.discovery.given() && (leave || now.born != before.born);
    auto const kind = by_hosts ? end_kind::hosts : end_kind::rank;
    auto end = lost_ && lost_->member >= 0 ? end_of(*lost_, ranks_->known()) : generation_end{.kind = kind, .cause = why};
    end.at_s = lost_ ? lost_s_ : begun;
    if (end.kind == end_kind::node) end.lost_hosts = nodes_of(lost_->judged.ranks_to_blame());
    end.number = before.number;
    for (auto const& one : before.members) end.members.push_back(one.number);
    end.folder = options_.output_dir;
    end.output_s = outcome.output_s < 0 ? -1 : outcome.output_s - outcome.started_s;
    end.metric_s = outcome.metric_s < 0 ? -1 : outcome.metric_s - outcome.started_s;
    end.lived_s = end.at_s - outcome.started_s;
    end.waited_s = begun - end.at_s;
    end.in_place = true;
    outcome.survived.push_back(std::move(end));
    outcome.in_place = now;
    if (outcome.first_started_s < 0) outcome.first_started_s = outcome.started_s;
    outcome.started_s = begun;
    lost_.reset();
    if (!options_.quiet)
        say(fmt::format("note: {} in place{}", count_of_ranks(now.members.size()), why.empty() ? "" : ": " + why));
}

/// Slurm itself sends the signal to a script with --requeue; job scripts ask for SIGUSR1.
bool run_supervisor::is_early_signal(int number) const {
    return number == SIGUSR1 || (options_.signal_before_end && options_.signal_before_end->number == number);
}

/// The ranks are inspected first, because one that the signal has ended has no handler any more.
void run_supervisor::send_notice(int number, std::function<void(signal_reach const&)> const& tell) {
    bool const to_handlers_only = is_notice(number);
    ranks_->inspect([=](auto const& rows) { tell(find_reach(number, to_handlers_only, rows)); });
    ranks_->signal(number, to_handlers_only);
}

/// A program that got no signal, and ends with 0, is done.
void run_supervisor::warn_ranks(std::string const& when, int number) {
    bool const before = std::exchange(run_.outcome.early_signal, true);
    send_notice(number, [this, when, before](signal_reach const& reach) {
        say(fmt::format("{}: {}", when, reach.text));
        if (reach.reached == 0) run_.outcome.early_signal = before;
    });
}

/// Notes what a restart has to know. A fault of the start also affects the next start.
void run_supervisor::note_failure(verdict const& judged) {
    auto const& known = ranks_->known();
    auto& outcome = run_.outcome;
    outcome.failed_s = seconds_now();
    outcome.kind = kind_of_end(judged, known, run_.life.is_first());
    if (auto const blamed = read_text_file(blame_file(fmt::format("{}/{}", run_.session_dir, hosts_file_name)));
        !blamed.empty()) {
        outcome.kind = end_kind::node;
        outcome.lost_hosts = {blamed};
    }
}

/// Returns their nodes by the names in the allocation; none if this node is the only one.
std::vector<std::string> run_supervisor::nodes_of(std::vector<int> const& ranks) const {
    std::vector<std::string> names;
    for (int const rank : ranks) {
        auto const node = static_cast<std::size_t>(ranks_->known()[rank].node);
        auto const& known = ranks_->known().hosts;
        if (node >= std::max(run_.given.nodes.size(), known.size())) continue;
        auto const& name = node < run_.given.nodes.size() ? run_.given.nodes[node].name : known[node];  // a node that came later
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    return names;
}

/// No later generation may use what ranks there may still occupy.
void run_supervisor::note_lost_hosts(std::vector<std::string> const& names) {
    auto& lost = run_.outcome.lost_hosts;
    for (auto const& name : names)
        if (std::ranges::find(lost, name) == lost.end()) lost.push_back(name);
}

void run_supervisor::give_up(std::vector<culprit> const& lost) {
    for (auto const& one : lost)
        if (auto& rank = ranks_->known()[one.rank]; !rank.over()) rank.now = rank_evidence::state::lost;
}

void run_supervisor::decide_after(duration patience) {
    if (!failed_ && hold_end(ranks_->known(), {})) plan_decision(patience);
}

void run_supervisor::plan_decision(duration patience) {
    loop_.after(patience, [this] {
        if (ranks_->known().deciding) decide();
    });
}

void run_supervisor::decide() {
    auto& known = ranks_->known();
    known.deciding = false;
    if (failed_ || phase_ == run_phase::closing || phase_ == run_phase::done) return close_if_over();
    known.scheduler.reset();
    judge([&](evidence const& facts) {
        ranks_->hear_engine();
        auto judged = judge_cause(facts);
        if (judged.next != verdict::step::ask_scheduler) return judged;
        ask_scheduler(known.engine.empty() ? brief_question : patient_question, !known.engine.empty());
        ranks_->hear_engine();  // its explanation may have been on its way
        return judge_cause(facts);
    });
    if (!known.deciding && !failed_) known.asked = known.engine_awaited = false;
    if (known.deciding) known.engine_awaited = true;
    close_if_over();
}

/// `for_nodes`: ask which nodes are down even if the job goes on.
void run_supervisor::ask_scheduler(std::chrono::milliseconds patience, bool for_nodes) {
    auto& word = ranks_->known().scheduler.emplace();
    word.end = ask_job_end(run_.given, run_.inherited, patience);
    if (ranks_->known().engine.empty() || !(word.end == job_end::node_failed || (for_nodes && word.end == job_end::going_on)))
        return;
    auto const down = ask_down_nodes(run_.given, run_.inherited, patience);
    for (std::size_t n = 0; n < run_.given.nodes.size(); ++n)
        if (std::ranges::find(down, run_.given.nodes[n].name) != down.end()) word.down_nodes.push_back(static_cast<int>(n));
}

/// Explains SIGTERM to this process, if the scheduler knows the reason.
void run_supervisor::explain_end() {
    if (ranks_->known().engine.empty() && !run_.given.fixed) return;
    ask_scheduler(brief_question, false);
    auto const why = explain_request_to_end(ranks_->known());
    if (!why.ends()) return;
    say("error: " + why.text);
    explain_time_limit_to_user();
    if (why.exit_code == 0) return;
    give_up(why.culprits);
    exit_code_ = why.exit_code;
}

/// Explains the end of a job whose time is up, as the scheduler says.
void run_supervisor::explain_time_limit_to_user() {
    auto const& word = ranks_->known().scheduler;
    if (word && word->end == job_end::out_of_time && !options_.quiet)
        say("note: " + explain_time_limit(run_.inherited, options_.signal_before_end.has_value(), options_.requeue_saved));
}

// ------------------------------------------------------------------------------------------------ from outside

void run_supervisor::on_signal() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        int const sent = static_cast<int>(info.ssi_signo);
        int const s = meaning_of(sent, run_.given);
        if (s == SIGCHLD) {
            ranks_->on_child();
        } else if (requests_.is_repeat(s)) {
            continue;
        } else if (s == SIGTSTP) {
            ranks_->signal(SIGSTOP, false);
            ::raise(SIGSTOP);
        } else if (s == SIGUSR2) {
            said_tables_ = {};  // whoever asks sees all of it
            show_ranks({}, [] {});
            ranks_->signal(s, true);
        } else if (s == SIGCONT || !ends_the_run(s)) {
            if (is_early_signal(s))
                warn_ranks(fmt::format("got SIG{}", signal_name(s)), s);
            else
                ranks_->signal(s, is_notice(s));
        } else if (active()) {
            on_request_to_end(s, sent);
        } else {
            leave_at_once();  // a second request ends the grace
        }
    }
}

void run_supervisor::on_request_to_end(int s, int sent) {
    auto const running = ranks_->known().running();
    if (s != SIGTERM || !options_.quiet)
        say(fmt::format("got SIG{}{}", signal_name(sent), running == 0 ? "" : ": ending " + count_of_ranks(running)));
    failed_ = asked_ = true;
    run_.outcome.from_outside = true;
    if (s == SIGTERM && phase_ == run_phase::running) show_last_look();
    stop(128 + s, s);
    if (s == SIGTERM) explain_end();
    if (s == SIGTERM && run_.given.scheduler == scheduler_kind::flux) requests_.take_as_known(s);
    requests_.extend(s);  // the scheduler may have answered slowly
    close_if_over();
}

void run_supervisor::on_guardian_gone() {
    loop_.unwatch(run_.guardian_fd);
    failed_ = true;
    run_.outcome.from_outside = true;
    exit_code_ = 128 + SIGKILL;
    kill_all();
}

void run_supervisor::on_writer_event() {
    writer_.clear_event();
    check_output();
    ranks_->resume_output();
}

/// Handles a time limit: inspects the ranks before it ends them.
void run_supervisor::expire(std::string const& reason) {
    if (failed_) return;
    failed_ = true;
    run_.outcome.from_outside = true;
    exit_code_ = exit_code(errc::timeout);
    say("error: " + reason);
    show_ranks(options_.on_hang, [this] {
        stop(exit_code(errc::timeout), SIGTERM);
        close_if_over();
    });
}

void run_supervisor::show_ranks(std::string const& command, std::function<void()> then) {
    ranks_->inspect([this, command, then = std::move(then)](std::vector<rank_row> const& rows) {
        for (auto const& line : said_tables_.describe(rows, command.empty())) say(line);
        if (command.empty()) return then();
        ranks_->ask_about(command, choose_examples(rows), [this, then](std::vector<rank_row> const& asked) {
            for (auto const& row : asked)
                say(fmt::format("--on-hang of rank {} on {}, pid {}:\n{}", row.rank, row.host, row.sight.pid, row.sight.said));
            then();
        });
    });
}

/// The scheduler ends the job; the ranks may have got its request in other ways before.
void run_supervisor::show_last_look() {
    if (!run_.given.fixed || options_.quiet) return;
    ranks_->inspect([this](auto const& rows) {
        for (auto const& line : said_tables_.describe(last_look_.complete(rows), true)) say(line);
    });
}

// ------------------------------------------------------------------------------------------------ the end

void run_supervisor::stop(int code, int signal_number) {
    if (!active()) return;
    phase_ = run_phase::stopping;
    exit_code_ = code;
    ranks_->end(signal_number);
}

void run_supervisor::kill_all() {
    if (active()) phase_ = run_phase::stopping;
    ranks_->kill();
    close_if_over();
}

/// The user waits, so the run no longer waits for processes that cannot be killed or do not answer.
void run_supervisor::leave_at_once() {
    kill_all();
    loop_.after(longest_after_second_request, [this] {
        if (phase_ == run_phase::stopping) {
            ranks_->give_up_rest();
            close_if_over();
        }
        if (phase_ != run_phase::done) on_closed();
    });
}

void run_supervisor::close_if_over() {
    if (phase_ != run_phase::running && phase_ != run_phase::stopping) return;
    auto const& known = ranks_->known();
    if (known.count([](auto const& r) { return r.here() && r.is_rank(); }) > 0) return;
    if (!failed_ && known.deciding) return;                         // their cause is decided first
    if (known.count([](auto const& r) { return r.here(); }) > 0) {  // spares, which wait in vain
        if (std::exchange(phase_, run_phase::stopping) == run_phase::running) ranks_->end_spares();
        return;
    }
    phase_ = run_phase::closing;
    if (run_.asks_hosts != nullptr) run_.asks_hosts->stop();
    ranks_->close(failed_, exit_code_, culprit_);
}

void run_supervisor::on_closed() {
    if (phase_ == run_phase::done) return;
    phase_ = run_phase::done;
    auto const late = ranks_->finish(failed_);
    if (!late.text.empty() && !failed_) say("error: " + late.text);
    if (exit_code_ == 0 && late.ends() && !failed_) exit_code_ = late.exit_code;
    take_saved_code();
    drain_output();
    check_output();
    if (failed_) writer_.drain_briefly();
    loop_.stop();
}

/// Ranks that have saved want another start, whatever code without a failure the others end with.
void run_supervisor::take_saved_code() {
    auto const& known = ranks_->known();
    auto const saved = known.count([](auto const& r) { return r.saved && r.is_rank(); });
    // A rank that the others went on without has not ended well, but the run has.
    bool const all = known.count([](auto const& r) { return r.ended_well() && r.is_rank(); }) == known.size();
    if (saved == 0 || !(failed_ ? asked_ && all : exit_code_ == 0)) return;
    exit_code_ = options_.saved_code;
    if (!options_.quiet)
        say(fmt::format("note: {} ended with {}: saved, to go on in another start (--saved-code)",
                        known.size() == 1 ? std::string("rank 0") : fmt::format("{} of {} ranks", saved, known.size()),
                        exit_code_));
}

/// Output that is lost other than by a closed reader is a failure of the run.
void run_supervisor::check_output() {
    auto const fault = writer_.describe_fault();
    if (fault.empty() || failed_) return;
    exit_code_ = exit_code(errc::io);  // also if no rank is left to stop
    act_on(blame_run(failure_cause::output, fault, exit_code_));
}

/// A reader that does not read blocks muster, as it would any program, but not against a request to end.
void run_supervisor::drain_output() {
    if (failed_) return writer_.drain_briefly();
    writer_.drain_until([this] {
        auto const request = take_request_to_end(signals_.get());
        if (request) exit_code_ = 128 + *request;
        return request.has_value();
    });
}

void run_supervisor::say(std::string const& line) {
    constexpr std::string_view prefix = "error: ";
    // Generations of a run share its output.
    auto const generation = options_.is_elastic() ? fmt::format("generation {}: ", run_.generation()) : std::string();
    if (run_.outcome.cause.empty() && line.starts_with(prefix))
        run_.outcome.cause = line.substr(prefix.size(), line.find('\n') - prefix.size());
    std::string_view const kind = line.starts_with(prefix) ? prefix : line.starts_with("note: ") ? "note: " : "";
    writer_.note(fmt::format("muster: {}{}{}\n", kind, generation, std::string_view(line).substr(kind.size())));
}

}  // namespace muster
