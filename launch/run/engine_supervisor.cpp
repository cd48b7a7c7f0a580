#include "launch/run/engine_supervisor.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/process/phase_timeline.hpp"
#include "launch/engine/describe_engine_job.hpp"
#include "launch/engine/engine_table.hpp"
#include "launch/engine/mpi_family.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "launch/system/exit_status.hpp"
#include "launch/system/network.hpp"
#include "launch/watch/job_end.hpp"
#include "launch/watch/rank_table.hpp"

namespace muster {

namespace {

constexpr duration gather_limit{120};  ///< for the next host or rank to come: a large job may take longer than that
constexpr duration final_messages_patience{0.2};
constexpr duration leaver_patience{10};  ///< until the others are said to wait for a rank that has ended well
constexpr duration abort_patience{0.3};  ///< for the same on why a rank of an MPI world has ended

}  // namespace

engine_supervisor::engine_supervisor(run_context const& run, engine_row const& engine, std::vector<remote_rank> ranks)
    : signals_(take_signals(launcher_signals(), "the launcher")),
      options_(run.options),
      given_(run.given),
      inherited_(run.inherited),
      outcome_(run.outcome),
      engine_(engine),
      gpu_record_(loop_, run.options.output_dir),
      listener_(loop_, ranks.size(), run.options.lost_after(),
                [this](wire::hello const& hello, std::unique_ptr<frame_channel>& link) { on_arrival(hello, link); }),
      ranks_(std::move(ranks)),
      output_(loop_, writer_, ranks_.size(), ranks_.window(),
              [this](int rank, std::size_t bytes) { ranks_[rank].link.send(wire::encode(wire::room{bytes})); }),
      deadlines_(loop_, run.options, run.given.ends_at,
                 {[this] { return phase_ == phase::gathering || phase_ == phase::running; }, [this] { return ranks_.running(); },
                  [this](std::string const& reason) { expire(reason); },
                  [this](std::string const& note, int signal_number) {
                      say(note);
                      ranks_.send_all(wire::signal{signal_number, false, is_notice(signal_number)});
                  }}),
      guardian_fd_(run.guardian_fd),
      start_(event_loop::clock::now()) {
    ::signal(SIGPIPE, SIG_IGN);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    loop_.watch_readable(signals_.get(), [this] { on_signal(); });
    loop_.watch_readable(guardian_fd_, [this] { on_guardian_gone(); });
    loop_.watch_readable(writer_.event_fd(), [this] { on_writer_event(); });
}

engine_supervisor::~engine_supervisor() = default;

void engine_supervisor::direct_shims(engine_command& command, engine_job const& job) {
    directions_.emplace(listener_.key(), listener_.port(), directions_request(job, options_, engine_.name));
    for (auto const& [name, value] : directions_->variables()) command.variables.set(name, value);
    if (!directions_->warning().empty()) say("note: " + directions_->warning());
    if (!options_.verbose) return;
    for (auto const& note : directions_->notes()) say(note);
}

int engine_supervisor::run(engine_command const& command) {
    stdin_forwarder input(loop_);
    speaks_ = command.speaks;
    more_open_files const files(engine_.name == "remote" ? ranks_.hosts() : ranks_.size());
    start_ = event_loop::clock::now();
    engine_pid_ = start_engine(command, files, {input.child_fd(), STDOUT_FILENO, STDERR_FILENO});
    input.child_started();
    end_phase("engine started");
    loop_.watch_reader_gone(STDOUT_FILENO, [this] { on_reader_gone(); });
    note_progress();
    if (options_.start_timeout)
        loop_.after(*options_.start_timeout, [this] { on_gather_timeout(); });
    else
        watch_gathering();
    deadlines_.start();
    loop_.run();
    end_phase("ranks and engine ended");
    return exit_code_;
}

// ------------------------------------------------------------------------------------------------ connections

void engine_supervisor::on_arrival(wire::hello const& hello, std::unique_ptr<frame_channel>& link) {
    if (hello.agent >= 0) return take_host(hello, link);
    if (hello.again) return take_again(hello, link);
    if (phase_ != phase::gathering) return;
    if (auto const why = ranks_.objection_to(hello, engine_.name); !why.empty()) return fail(why, exit_code(errc::placement));
    note_progress();
    take_over(ranks_.admit(hello), std::move(link));
}

void engine_supervisor::take_over(remote_rank& rank, std::unique_ptr<frame_channel> link) {
    output_.set_format(rank.job.who.rank, output_format(options_.tag_output, options_.timestamp_output, rank.job.who));
    link->set_callbacks({[this, &rank](std::string_view frame) { on_frame(rank, frame); },
                         [this, &rank](std::string const& reason) { on_link_lost(rank, reason); }},
                        largest_frame_bytes);
    rank.link.set_own(std::move(link));
    rank.link.send(wire::encode(ranks_.job_of(rank)));
}

void engine_supervisor::on_frame(remote_rank& rank, std::string_view frame) {
    if (auto const piece = wire::read_output(frame)) return on_output(rank, *piece);
    try {
        std::visit([&](auto const& message) { on_message(rank, message); }, wire::decode(frame));
    } catch (error const& e) {
        fail(rank, e.what(), exit_code(errc::internal));
    }
}

void engine_supervisor::on_output(remote_rank& rank, wire::output_piece const& piece) {
    output_.take(rank.job.who.rank, piece);
    if (piece.what != wire::output_piece::kind::note) deadlines_.note_output();
}

void engine_supervisor::on_message(remote_rank& rank, wire::ready const& ready) {
    note_progress();
    rank.place = ready;
    if (rank.now != remote_rank::state::placing) return;
    rank.now = remote_rank::state::ready;
    if (++ready_ == ranks_.size() && phase_ == phase::gathering) start_ranks();
}

/// All shims are there and nothing has been started yet: the last moment to see that two ranks have one GPU.
void engine_supervisor::start_ranks() {
    bool const sharing = options_.place.ranks_per_gpu > 1 || options_.place.slots_per_node || !options_.place.gpu_map.empty();
    if (auto const shared = sharing ? std::nullopt : ranks_.find_shared_gpu())
        return fail(*shared->first, fmt::format("would share its GPU with {}", ranks_.name_of(*shared->second)),
                    exit_code(errc::placement), "use --ranks-per-gpu if that is meant");
    if (outcome_ != nullptr)
        for (auto const& rank : ranks_) outcome_->shares.push_back({rank.place.cpus, rank.place.gpu_index});
    if (options_.verbose)
        for (auto const& rank : ranks_)
            say(fmt::format("{}: cores {}{}; {}", ranks_.name_of(rank), rank.place.cpus.empty() ? "any" : rank.place.cpus,
                            rank.place.nic.empty() ? "" : ", NIC " + rank.place.nic, rank.place.why));
    auto const noted = [](remote_rank const& rank) { return !rank.place.note.empty(); };
    if (auto const first = std::find_if(ranks_.begin(), ranks_.end(), noted); first != ranks_.end() && !options_.quiet) {
        auto const others = std::count_if(first, ranks_.end(), noted) - 1;
        say(fmt::format("note: {}{}", first->place.note,
                        others > 0 ? fmt::format(" (and so {} more host{})", others, others > 1 ? "s" : "") : ""));
    }
    phase_ = phase::running;
    end_phase("all ranks placed by their shims");
    start_ = event_loop::clock::now();
    deadlines_.note_output();
    ranks_.send_all(ranks_.make_go());
    deadlines_.start_early_signal();  // before this no rank would take it
    beat();
    if (options_.start_timeout) loop_.after(*options_.start_timeout, [this] { check_meeting(); });
    if (ranks_.size() > 1 && !options_.quiet) loop_.after(meeting_patience, [this] { note_unmet(); });
}

void engine_supervisor::on_message(remote_rank& rank, wire::started const&) {
    if (rank.now == remote_rank::state::ready) rank.now = remote_rank::state::running;
}

void engine_supervisor::on_message(remote_rank& rank, wire::failed const& failed) {
    fail(fmt::format("{}: {}", ranks_.name_of(rank), failed.what), failed.exit_code);
}

void engine_supervisor::on_message(remote_rank& rank, wire::ended const& ended) {
    if (rank.wait_status) return;  // told before, on its other way
    rank.now = remote_rank::state::ended;
    rank.wait_status = ended.wait_status;
    rank.left_early = ended.wait_status == 0 && first_lost_ < 0 && !ended.asked;
    auto const fault = find_end_fault(ended.wait_status, ended.memory);
    if (!fault && rank.uses_mpi && !options_.quiet) loop_.after(leaver_patience, [this] { note_leaver(); });
    if (!fault) return;
    suspicion const who{rank.job.who.rank, *fault, ended.last_lines, ended.asked};
    bool const out_of_memory = ended.memory == memory_verdict::in_cgroup;
    if (may_be_sent_to_all(ended.wait_status) && !out_of_memory)
        suspect(who, blame_patience);
    else if (rank.uses_mpi || deciding_)
        suspect(who, abort_patience);
    else
        fail(rank, fault->what, fault->exit_code, fault->advice, ended.last_lines);
}

void engine_supervisor::on_message(remote_rank& rank, wire::gone const&) {
    rank.now = remote_rank::state::gone;
    output_.finish(rank.job.who.rank);  // its shim has sent all of it before
    close_if_over();
}

void engine_supervisor::on_message(remote_rank& rank, wire::gpus_used const& used) {
    gpu_record_.note(ranks_.host_of(rank), used.gpus);
}

void engine_supervisor::on_message(remote_rank& rank, wire::used_mpi const& used) {
    rank.uses_mpi = true;
    if (options_.allow_singletons || ranks_.size() < 2) return;
    if (auto const family = family_of(used.library); is_foreign(family, speaks_))
        fail(rank,
             fmt::format("came up as a singleton, in a world of size 1: it uses {}, which does not work with {}", used.library,
                         engine_.name),
             exit_code(errc::singleton), fmt::format("use {}, or --allow-singletons if that is meant", engines_for(family)));
}

void engine_supervisor::on_message(remote_rank& rank, wire::orphaned const& orphaned) {
    rank.daemon_lost = orphaned.parent.empty() ? std::string("the engine's daemon") : orphaned.parent;
    // An engine that has lost a rank ends its daemons on all nodes. A daemon that dies by itself takes no watcher with it.
    if (first_orphan_ < 0 && first_lost_ < 0 && first_killed_ < 0) first_orphan_ = rank.job.who.rank;
    decide_cause_after(abort_patience);  // its engine may have died before it
}

void engine_supervisor::on_link_lost(remote_rank& rank, std::string const& reason) {
    spdlog::debug("{}: {}", ranks_.name_of(rank), reason);
    output_.finish(rank.job.who.rank);
    if (phase_ == phase::closing || phase_ == phase::done || rank.now == remote_rank::state::gone) return;
    rank.now = remote_rank::state::lost;
    rank.cut = reason == frame_channel::closed_by_peer;
    if (first_lost_ < 0) first_lost_ = rank.job.who.rank;
    if (phase_ == phase::stopping) return close_if_over();
    // Others may be lost at the same moment, and the message of the rank that failed first may be on its way.
    decide_cause_after(abort_patience);
}

// ------------------------------------------------------------------------------------------------ the outside

void engine_supervisor::on_signal() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        int const sent = static_cast<int>(info.ssi_signo);
        int const s = meaning_of(sent, given_);
        if (s == SIGCHLD) {
            on_child();
        } else if (requests_.is_repeat(s)) {
            continue;
        } else if (s == SIGTSTP) {
            ranks_.send_all(wire::signal{SIGSTOP, false});
            ::raise(SIGSTOP);
        } else if (s == SIGUSR2) {
            show_ranks();
            ranks_.send_all(wire::signal{s, false, true});
        } else if (s == SIGCONT || !ends_the_run(s)) {
            ranks_.send_all(wire::signal{s, false});
        } else if (phase_ == phase::gathering || phase_ == phase::running) {
            if (s != SIGTERM || !options_.quiet)
                say(fmt::format("got SIG{}{}", ::sigabbrev_np(sent),
                                ranks_.running() == 0 ? "" : ": ending " + count_of_ranks(ranks_.running())));
            failed_ = true;
            stop(128 + s, s);
            if (s == SIGTERM) explain_end();
            if (s == SIGTERM && given_.scheduler == scheduler_kind::flux) requests_.take_as_known(s);
            requests_.extend(s);  // the scheduler may have been slow to answer
        } else {
            kill_all();  // a second request: the grace is over
        }
    }
}

void engine_supervisor::on_child() {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == cancel_pid_) {
            cancel_pid_ = -1;
        } else if (pid == engine_pid_ && !engine_status_) {
            engine_status_ = status;
            on_engine_end();
        }
}

void engine_supervisor::on_engine_end() {
    if (phase_ == phase::closing) return finish();
    if (phase_ == phase::done) return;
    // Messages of the shims may still be on their way.
    loop_.after(final_messages_patience, [this] {
        if (phase_ == phase::closing || phase_ == phase::done) return finish();
        if (phase_ == phase::stopping) return close_if_over();
        if (first_lost_ >= 0 || deciding_ || WIFSIGNALED(*engine_status_)) return decide_cause();
        auto const absent = ranks_.list(remote_rank::state::absent);
        auto const what = describe_end(*engine_status_);
        int const code = shell_code(*engine_status_);
        // It has named the host that is to blame; the others are those that were on their way.
        if (!absent.empty() && engine_.name == "remote")
            fail(fmt::format("no rank was started: {} {}, for the reason above", engine_.name, what),
                 exit_code(errc::unavailable));
        else if (!absent.empty())
            fail(fmt::format("{} {} before {} of {} ranks came up ({}); its own message is above; {}", engine_.name, what,
                             ranks_.count(remote_rank::state::absent), ranks_.size(), absent, advice_on_absent()),
                 exit_code(errc::unavailable));
        else
            fail(fmt::format("{} {} while {} of {} ranks were running", engine_.name, what, ranks_.running(), ranks_.size()),
                 code == 0 ? exit_code(errc::unavailable) : code);
    });
}

/// The engine's own message may be long, and the cause stand in its first line.
std::string engine_supervisor::advice_on_absent() const {
    constexpr std::size_t most_names = 3;  // each may take some seconds
    std::set<std::string> hosts;
    for (auto const& rank : ranks_)
        if (rank.now == remote_rank::state::absent && hosts.size() < most_names) hosts.insert(rank.job.who.host);
    std::erase_if(hosts, has_address);
    if (!hosts.empty()) return fmt::format("no address is known here of {}: correct the name", fmt::join(hosts, ", "));
    return "check that every node has this muster at the same path, and see the command with --dry-run";
}

void engine_supervisor::on_guardian_gone() {
    loop_.unwatch(guardian_fd_);
    failed_ = true;
    exit_code_ = 128 + SIGKILL;
    kill_all();
}

/// As with a program whose output goes to head: it ends, and says nothing.
void engine_supervisor::on_reader_gone() {
    loop_.unwatch(STDOUT_FILENO);
    if (phase_ == phase::closing) return end_engine(SIGTERM);
    if (phase_ != phase::gathering && phase_ != phase::running) return;
    if (options_.verbose) say(fmt::format("nobody reads standard output any more: ending {}", count_of_ranks(ranks_.running())));
    failed_ = true;
    stop(128 + SIGPIPE, SIGTERM);
}

void engine_supervisor::on_writer_event() {
    writer_.clear_event();
    check_output();
    output_.resume();
}

void engine_supervisor::on_gather_timeout() {
    if (phase_ != phase::gathering) return;
    auto const when = options_.start_timeout ? fmt::format("after {}", format_duration(*options_.start_timeout))
                                             : fmt::format("nothing has come for {}:", format_duration(gather_limit));
    fail(fmt::format("{} {} of {} ranks are there; missing: {}; check those nodes with muster doctor --allocation", when,
                     ranks_.count(remote_rank::state::ready), ranks_.size(), list_missing()),
         exit_code(errc::timeout));
}

/// Where agents have come from some hosts, the others are those that are missing: no rank is started before all are there.
std::string engine_supervisor::list_missing() const {
    if (auto const hosts = ranks_.list([this](auto const& rank) { return ranks_.awaits_agent_of(rank); }); !hosts.empty())
        return hosts;
    auto const absent = ranks_.list(remote_rank::state::absent);
    auto const placing = ranks_.list(remote_rank::state::placing);
    return (absent.empty() ? "none" : absent) + (placing.empty() ? "" : "; not yet placed: " + placing);
}

/// Whoever takes his time is waited for as long as others still come.
void engine_supervisor::watch_gathering() {
    auto const left = gather_limit - duration(event_loop::clock::now() - last_progress_);
    if (left <= duration(0)) return on_gather_timeout();
    loop_.after(left, [this] {
        if (phase_ == phase::gathering) watch_gathering();
    });
}

void engine_supervisor::say(std::string const& line) {
    constexpr std::string_view prefix = "error: ";
    if (outcome_ != nullptr && outcome_->cause.empty() && line.starts_with(prefix))
        outcome_->cause = line.substr(prefix.size(), line.find('\n') - prefix.size());
    writer_.write(STDERR_FILENO, fmt::format("muster: {}\n", line));
}

}  // namespace muster
