#include "launch/run/remote/remote_group.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/process/this_process.hpp"
#include "launch/engine/engine_job.hpp"
#include "launch/engine/mpi_family.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "launch/remote/host_agent.hpp"
#include "launch/run/prepare_run.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/network.hpp"
#include "launch/watch/failure_report.hpp"

namespace muster {

namespace {

using state = rank_evidence::state;

constexpr duration final_messages_patience{0.2};
constexpr duration cause_patience{0.3};             ///< for a message that says why a rank, its shim or its agent has ended
constexpr duration return_patience{3};              ///< for shims whose agent is gone, which then connect by themselves
constexpr duration beyond_grace{2};                 ///< for the shims' messages after they have killed their ranks
constexpr duration engine_patience{5};              ///< for an engine whose ranks are all gone, before muster says so
constexpr duration gathering_engine_patience{1.5};  ///< for an engine whose shims have not all come
constexpr duration agent_patience{2};               ///< for Hydra's agents in a PBS job
constexpr duration longest_wait{120};               ///< for an engine whose ranks have ended well, before muster ends it

}  // namespace

remote_group::remote_group(run_context const& run, event_loop& loop, output_writer& writer, group_events& events,
                           engine_row const& engine, std::vector<remote_rank> ranks)
    : rank_group(run, events),
      run_(run),
      options_(run.options),
      loop_(loop),
      engine_(engine),
      samples_(
          loop, run, known_.job_id, [this](bool ended_too) { return present_ranks(ended_too); },
          [this](std::string const& note) { events_.say(note); }),
      listener_(loop, ranks.size(), run.options.lost_after(),
                [this](wire::hello const& hello, std::unique_ptr<frame_channel>& link) { on_arrival(hello, link); }),
      ranks_(std::move(ranks), known_),
      gathering_(loop, run, ranks_, known_, events),
      output_(loop, writer, ranks_.size(), ranks_.window(),
              [this](int rank, std::size_t bytes) { ranks_[rank].link.send(wire::encode(wire::room{bytes})); }),
      questions_(
          loop, ranks_, run.options.lost_after(),
          {[this] { return events_.now() == run_phase::running; },
           [this](std::vector<int> const& silent) {
               if (auto const those = spares_.give_up_silent(world_, silent); !those.empty())
                   events_.judge([&](evidence const& now) { return judge_silence(now, those, options_.lost_after() / 1.5); });
               return events_.now() == run_phase::running;
           }}),
      process_(
          loop, engine, [this](std::string const& line) { events_.say(line); },
          [&writer](std::string lines) { writer.note(std::move(lines)); }),
      spares_(loop, run, ranks_, known_, events, output_) {
    known_.engine = engine.name;
}

void remote_group::direct_shims(engine_command command, engine_job const& job) {
    command_ = std::move(command);
    known_.speaks = command_.speaks;
    directions_.emplace(listener_.key(), listener_.port(), directions_request(job, options_, engine_.name));
    for (auto const& [name, value] : directions_->variables()) command_.variables.set(name, value);
    if (!directions_->warning().empty()) events_.say("note: " + directions_->warning());
    if (!options_.verbose) return;
    for (auto const& note : directions_->notes()) events_.say(note);
}

void remote_group::start() {
    write_files(command_);
    bool const by_srun = run_.given.scheduler == scheduler_kind::slurm;
    process_.start(command_, engine_.name == "remote" ? ranks_.hosts() : ranks_.size(), by_srun);
    end_phase("engine started");
    loop_.watch_reader_gone(STDOUT_FILENO, [this] {
        loop_.unwatch(STDOUT_FILENO);
        if (events_.now() == run_phase::closing) return end_engine();
        events_.on_reader_gone();
    });
    gathering_.start();
}

// ------------------------------------------------------------------------------------------------ connections

void remote_group::on_arrival(wire::hello const& hello, std::unique_ptr<frame_channel>& link) {
    if (hello.agent >= 0) return take_host(hello, link);
    if (hello.again) return take_again(hello, link);
    if (!gathering() || refuses(ranks_.objection_to(hello, engine_.name))) return;
    auto& rank = admit(hello);
    link->set_callbacks({[this, &rank](std::string_view frame) { on_frame(rank, frame); },
                         [this, &rank](std::string const& reason) { on_link_lost(rank, reason); }},
                        largest_frame_bytes);
    rank.link.set_own(std::move(link));
    rank.link.send(wire::encode(ranks_.job_of(rank)));
}

bool remote_group::refuses(std::string const& objection) {
    if (!objection.empty() && !gathering()) events_.say("note: " + objection);
    if (!objection.empty() && gathering()) fail(failure_cause::never_came, objection, exit_code(errc::placement));
    return !objection.empty();
}

remote_rank& remote_group::admit(wire::hello const& hello) {
    gathering_.note_progress();
    auto& rank = ranks_.admit(hello);
    output_.set_format(hello.rank, output_format(options_, rank.job.who, run_.generation(), rank.spare));
    return rank;
}

void remote_group::take_host(wire::hello const& hello, std::unique_ptr<frame_channel>& link) {
    if (!(gathering() || takes_late(ranks_.is_late_agent(hello.agent))) || refuses(ranks_.objection_to_agent(hello))) return;
    int const number = hello.agent;
    auto& host = ranks_.host(number);
    host.link = std::move(link);
    host.link->set_callbacks({[this, number](std::string_view frame) { on_host_frame(number, frame); },
                              [this, number](std::string const& reason) { on_host_lost(number, reason); }},
                             largest_frame_bytes);
    gathering_.note_progress();
}

/// The rank's agent is gone or stands still: this connection carries what must not wait for it.
void remote_group::take_again(wire::hello const& hello, std::unique_ptr<frame_channel>& link) {
    if (!known_.is_rank(hello.rank) || events_.now() == run_phase::done) return;
    auto& rank = ranks_[hello.rank];
    bool const is_gone = known(rank).now == state::gone;  // its shim waits to be dismissed
    if (!(known(rank).here() || is_gone) || rank.link.has_own()) return;
    link->set_callbacks({[this, &rank](std::string_view frame) { on_frame(rank, frame); },
                         [this, &rank](std::string const& reason) {
                             if (!rank.link.has_host()) on_link_lost(rank, reason);
                         }},
                        largest_frame_bytes);
    rank.link.set_own(std::move(link));
    if (rank.given_up) return ranks_.give_up(hello.rank);
    questions_.note_alive(hello.rank);
    if (events_.now() == run_phase::stopping) rank.link.send(wire::encode(wire::signal{stop_signal_, true}));
    if (events_.now() == run_phase::closing) rank.link.send(wire::encode(wire::bye{0}));
}

void remote_group::on_frame(remote_rank& rank, std::string_view frame) {
    if (rank.given_up) return;
    if (auto const piece = wire::read_output(frame)) {
        output_.take(rank.job.who.rank, *piece);
        if (piece->what != wire::output_piece::kind::note) events_.on_output();
        return;
    }
    try {
        std::visit([&](auto const& message) { on_message(rank, message); }, wire::decode(frame));
    } catch (error const& e) {
        events_.judge([&](evidence const& now) {
            return blame_rank(now, rank.job.who.rank, failure_cause::watcher, e.what(), exit_code(errc::internal));
        });
    }
}

void remote_group::on_host_frame(int number, std::string_view frame) {
    auto const one = wire::read_rank_frame(frame);
    if (!one || !ranks_.is_on(one->rank, number)) return;
    auto& rank = ranks_[one->rank];
    if (one->what == wire::rank_frame::kind::frame) return on_frame(rank, one->bytes);
    rank.link.drop_host();
    if (!rank.link.open()) on_link_lost(rank, std::string(frame_channel::closed_by_peer));
}

void remote_group::on_link_lost(remote_rank& rank, std::string const& reason) {
    auto& lost = known(rank);
    spdlog::debug("{}: {}", known_.name_of(lost), reason);
    output_.finish(lost.rank);
    if (winding_up() || lost.now == state::gone) return;
    if (!lost.is_rank() && events_.now() == run_phase::running)
        return spares_.give_up(world_, rank, reason != frame_channel::closed_by_peer);
    if (lost.left_out() && events_.now() == run_phase::running)
        return lost.now = state::gone, note_left(lost), events_.on_rank_gone(), events_.look_at_hosts();
    lost.now = state::lost;
    lost.cut = reason == frame_channel::closed_by_peer;
    if (known_.first_lost < 0) known_.first_lost = lost.rank;
    if (events_.now() == run_phase::stopping) return events_.on_rank_gone();
    // Others may be lost at the same moment, and the message of the rank that failed first may still be on its way.
    events_.decide_after(cause_patience);
}

/// If the host lives, its shims notice that their agent is gone and connect here to report on their ranks.
void remote_group::on_host_lost(int number, std::string const& reason) {
    if (winding_up()) return;
    auto const each = [this, number](auto const& what) {
        for (int const r : ranks_.host(number).ranks)
            if (auto& rank = ranks_[r]; known(rank).here() && !rank.link.open()) what(rank);
    };
    if (gathering()) {  // the starter has noticed it, too, and is about to say more
        loop_.after(return_patience, [this, number] {
            if (!gathering()) return;
            events_.judge([&](evidence const& now) { return blame_agent(now, ranks_.host(number).ranks.front()); });
        });
        return;
    }
    if (reason != frame_channel::closed_by_peer) return each([&](remote_rank& rank) { on_link_lost(rank, reason); });
    each([this](remote_rank& rank) {
        note_orphan(known(rank), agent_process);
        if (known(rank).in_generation()) events_.decide_after(cause_patience);
    });
    loop_.after(return_patience, [this, each] {
        each([this](remote_rank& rank) { on_link_lost(rank, std::string(frame_channel::closed_by_peer)); });
    });
}

/// An engine that has lost a rank ends its daemons on all nodes. A daemon that dies by itself ends no watcher. The loop may tell of a watcher that was lost before
/// after this.
void remote_group::note_orphan(rank_evidence& rank, std::string const& daemon) {
    rank.daemon_lost = daemon;
    if (!rank.in_generation() || known_.first_orphan >= 0 || known_.first_lost >= 0 || known_.first_killed >= 0) return;
    auto const lost = std::ranges::find_if(
        ranks_, [this](remote_rank const& other) { return known(other).running() && other.link.has_lost_shim(); });
    (lost == ranks_.end() ? known_.first_orphan : known_.first_lost) = lost == ranks_.end() ? rank.rank : lost->job.who.rank;
}

// ------------------------------------------------------------------------------------------------ messages

/// Takes a shim's first message through its agent. The host's ranks share one job, which the agent adapts for each.
void remote_group::on_message(remote_rank& rank, wire::hello const& hello) {
    auto& host = ranks_.host(rank.job.who.node_rank);
    if (hello.rank != rank.job.who.rank || !host.link) return;
    if (!gathering() && !takes_late(ranks_.is_late(hello.rank)))
        return host.link->send(wire::encode(wire::rank_frame{hello.rank, wire::encode(wire::bye{0})}));
    if (refuses(ranks_.objection_to(hello, engine_.name))) return;
    admit(hello).link.set_host(host.link, hello.rank);
    if (!std::exchange(host.has_job, true)) host.link->send(wire::encode(ranks_.job_of(rank)));
}

void remote_group::on_message(remote_rank& rank, wire::ready const& ready) {
    gathering_.note_progress();
    rank.place = ready;
    known(rank).gpu_index = ready.gpu_index;
    known(rank).gpu_uuid = ready.gpu_uuid;
    if (known(rank).now != state::placing) return;
    known(rank).now = state::ready;
    if (ranks_.is_late(rank.job.who.rank)) return begin_late(rank);
    if (++ready_ == ranks_.size() && gathering() && gathering_.may_start()) events_.on_ready();
}

void remote_group::on_message(remote_rank& rank, wire::started const&) {
    if (known(rank).now == state::ready) known(rank).now = state::running;
}

void remote_group::on_message(remote_rank& rank, wire::failed const& failed) {
    auto const what = fmt::format("{}: {}", known_.name_of(known(rank)), failed.what);
    if (!ranks_.is_late(rank.job.who.rank)) return fail(failure_cause::rank_end, what, failed.exit_code);
    events_.say("note: " + what);
    spares_.give_up(world_, rank, false);
}

void remote_group::on_message(remote_rank& rank, wire::ended const& ended) {
    auto& one = known(rank);
    if (one.wait_status) return;  // reported before over the other connection
    one.now = state::ended;
    one.note_end(ended.wait_status, options_.saved_code);
    one.memory = ended.memory;
    one.last_lines = ended.last_lines;
    one.left_early = one.is_rank() && one.ended_well() && known_.first_lost < 0 && !ended.asked;
    if (ended.asked && !one.was_asked()) one.to_end = rank_evidence::request::asked;
    questions_.finish_if_answered();
    if (!one.is_rank()) return spares_.note_end(world_, one, events_.now() == run_phase::running);
    if (one.left_out() && events_.now() == run_phase::running) return note_left(one);
    events_.on_rank_end(one.rank, tell_members(one));
}

void remote_group::on_message(remote_rank& rank, wire::gone const&) {
    known(rank).now = state::gone;
    output_.finish(rank.job.who.rank);  // its shim has sent all output before this
    events_.on_rank_gone();
    events_.look_at_hosts();
}

void remote_group::on_message(remote_rank& rank, wire::used_mpi const& used) {
    known(rank).uses_mpi = true;
    auto const family = family_of(used.library);
    if (options_.allow_singletons || ranks_.size() < 2 || !is_foreign(family, command_.speaks)) return;
    events_.judge([&](evidence const& now) {
        return blame_rank(now, rank.job.who.rank, failure_cause::singleton,
                          fmt::format("came up as a singleton, in a world of size 1: it uses {}, which does not work with {}",
                                      used.library, engine_.name),
                          exit_code(errc::singleton),
                          fmt::format("use {}, or --allow-singletons if that is meant", engines_for(family)));
    });
}

void remote_group::on_message(remote_rank& rank, wire::orphaned const& orphaned) {
    note_orphan(known(rank), orphaned.parent.empty() ? "the engine's daemon" : orphaned.parent);
    if (known(rank).in_generation()) events_.decide_after(cause_patience);  // its engine may have died first
}

void remote_group::on_message(remote_rank& rank, wire::asked_to_end const& asked) {
    auto& one = known(rank);
    if (!one.in_generation()) return;
    bool const unasked = asked.number == SIGKILL && !one.was_asked();
    if (unasked && known_.first_killed < 0) known_.first_killed = one.rank;
    // A suspect, too, whose end came before the signal.
    if (!one.was_asked()) one.to_end = unasked ? rank_evidence::request::guard_killed : rank_evidence::request::asked;
    if (!gathering() && events_.now() != run_phase::running) return;
    known_.asked = true;
    events_.decide_after(blame_patience);
}

void remote_group::on_message(remote_rank&, wire::aborting const& aborting) {
    if (!known_.is_rank(aborting.rank)) return;
    if (!known_.abort) known_.abort = evidence::abort_word{.rank = aborting.rank, .code = aborting.code};
    events_.decide_after(cause_patience);
}

/// No engine other than remote reports that MPI's ranks have met.
void remote_group::on_message(remote_rank& rank, wire::met const& met) {
    known(rank).mpi = met.left ? rank_evidence::world::left : rank_evidence::world::inside;
    events_.on_world();
}

void remote_group::on_message(remote_rank& rank, wire::settled const&) {
    known(rank).settled = true;
    events_.on_world();
}

void remote_group::on_message(remote_rank& rank, wire::pong const& pong) {
    if (questions_.take(rank.job.who.rank, pong) || events_.now() != run_phase::running) return;
    if (spares_.give_up_silent(world_, {rank.job.who.rank}).empty()) return;
    events_.judge([&](evidence const& now) { return judge_silent_agent(now, rank.job.who.rank, options_.lost_after() / 1.5); });
}

/// A shim speaks for its own rank only.
void remote_group::on_message(remote_rank& rank, wire::sampled const& sampled) {
    auto look = sampled.look;
    look.ranks.resize(std::min<std::size_t>(look.ranks.size(), 1));
    for (auto& one : look.ranks) one.rank = rank.job.who.rank;
    samples_.note(known_.host_of(known(rank)), look);
}

// ------------------------------------------------------------------------------------------------ the end

void remote_group::end(int signal_number) {
    if (world_) world_->close();
    stop_signal_ = signal_number;
    ranks_.send_all(wire::signal{signal_number, true});
    give_up_late();
}

void remote_group::end_spares() {
    if (world_) world_->close();
    stop_signal_ = SIGTERM;
    spares_.signal(SIGTERM);
    give_up_late();
}

/// Gives up ranks that the shims should have killed by then.
void remote_group::give_up_late() {
    loop_.after(options_.grace + beyond_grace, [this] {
        if (events_.now() != run_phase::stopping) return;
        give_up_rest();
        events_.say(fmt::format("{} did not end within {} (--grace, and {} more): giving them up", known_.list(state::lost),
                                format_duration(options_.grace), format_duration(beyond_grace)));
        events_.on_rank_gone();
    });
}

/// `limit` is for all of them together: many may not answer.
void remote_group::flush_all(duration limit) {
    auto const end = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(limit);
    for (auto& rank : ranks_) rank.link.flush(std::max<duration>(end - event_loop::clock::now(), duration(0)));
}

void remote_group::kill() {
    if (events_.now() == run_phase::closing) return end_engine();  // no rank is left, only the engine
    stop_signal_ = SIGKILL;
    ranks_.send_all(wire::signal{SIGKILL, true});
    flush_all(duration(0.5));
}

/// An engine whose ranks all ended well ends by itself; another one may never end.
void remote_group::close(bool failed, int exit_code, int culprit) {
    if (engine_.name == "srun" && culprit >= 0)  // so that sacct shows the code
        for (auto& rank : ranks_) rank.link.send(wire::encode(wire::bye{rank.job.who.rank == culprit ? exit_code : 0}));
    else
        ranks_.send_all(wire::bye{0});
    if (!any_engine()) return events_.on_closed();
    bool const broken = known_.count([](auto const& r) { return !r.daemon_lost.empty() || r.now == state::lost; }) > 0;
    if (broken || ranks_.any_given_up()) return end_engine();
    bool const complete = known_.count(state::absent) == 0;  // otherwise some shims may still come
    bool const clean = complete && !failed;
    // pbs_tmrsh does not always return after its task, e.g. if the first chunk has mpiprocs=0, and Hydra waits for it.
    if (engine_.name == "mpiexec") loop_.after(agent_patience, [] { kill_descendants_called("pbs_tmrsh"); });
    if (clean)
        loop_.after(engine_patience, [this] {
            if (events_.now() == run_phase::closing && !options_.quiet)
                events_.say(fmt::format("note: all ranks have ended well; waiting for {} to end (Ctrl-C ends it)", engine_.name));
        });
    loop_.after(clean      ? longest_wait
                : complete ? engine_patience
                           : gathering_engine_patience,
                [this, complete] {
                    if (events_.now() != run_phase::closing) return;
                    if (complete)
                        events_.say(fmt::format("{} still runs although its ranks have ended: ending it", engine_.name));
                    end_engine();
                });
}

void remote_group::end_engine() {
    auto const one = std::ranges::find_if(ranks_, [](auto const& rank) { return !rank.step.empty(); });
    process_.end(SIGTERM, one == ranks_.end() ? "" : one->step);
    spares_.end_starters(SIGTERM);
}

verdict remote_group::finish(bool failed) {
    process_.wait_for_cancel();
    process_.hear();
    flush_all(duration(0.2));
    // If ranks have left a host, or were lost with it, the engine may report a failure.
    bool const left = known_.count([](auto const& rank) { return rank.left_out(); }) > 0;
    return failed || left || process_.was_ended() ? verdict{} : judge_late_engine(known_);
}

void remote_group::hear_engine() {
    process_.hear();
    known_.cancelled_step = process_.cancelled_step();
}

void remote_group::on_child() {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
        if (process_.take(pid, status) || (spares_.take_child(world_, pid) && winding_up())) on_engine_end();
}

void remote_group::on_engine_end() {
    known_.engine_status = process_.status();
    if (winding_up() && any_engine()) return;
    if (winding_up()) return events_.on_closed();
    if (spares_.any_starter() && !ranks_.any_first_here()) return;  // only ranks that came later are left
    // Messages of the shims may still be on their way.
    loop_.after(final_messages_patience, [this] {
        if (winding_up()) return any_engine() ? void() : events_.on_closed();
        if (events_.now() == run_phase::stopping) return events_.on_rank_gone();
        known_.unknown_hosts = ranks_.unknown_hosts();
        events_.judge(judge_engine_end);
    });
}

// The following is for ranks that go on in place, without lost ones and with later ones.

void remote_group::go() {
    end_phase("all ranks placed by their shims");
    if (ranks_.goes_on_in_place()) {
        std::vector<member_world::place> places;
        for (auto const& rank : ranks_)
            if (rank.spare < 0) places.push_back({rank.job.who, rank.place.address});
        world_.emplace(loop_, run_, std::move(places), calls_of_members());
        spares_.join(*world_);
    }
    ranks_.send_all(ranks_.make_go());
    questions_.beat();
}

member_world::group remote_group::calls_of_members() {
    return {
        .send = [this](int seat,
                       std::string const& packet) { ranks_[seat].link.send_surely(wire::encode(wire::member_packet{packet})); },
        .look =
            [this](std::vector<int> const& seats, auto then) {
                look_at_stopped(seats, [then = std::move(then)](held_ranks const& held) { then(held.stopped); });
            },
        .kill = [this](int seat) { kill_one(seat); },
        .say = [this](std::string const& line) { events_.say(line); },
        .begin = [this](generation const& now, std::vector<int> const& seats, std::string const& why) { begin(now, seats, why); },
        .start = [](int) { throw error(errc::unavailable, "over several nodes none is started"); },
        .start_at = [this](slot const& at) { spares_.start(at, command_, *world_); },
        .look_at_hosts = [this] { events_.look_at_hosts(); },
        .waits = [this](int seat) { spares_.log().note_wait(seat); },
        .give_up = [this](std::string const& why) { give_up_members(why); }};
}

void remote_group::kill_one(int seat) {
    if (!ranks_[seat].link.open()) return spares_.end_starter(seat);
    ranks_[seat].link.send(wire::encode(wire::signal{SIGKILL, true}));
    loop_.after(options_.grace + beyond_grace, [this, seat] { give_up_killed(seat); });
}

/// SIGKILL does not end it, and it does nothing more: for the others it has ended.
void remote_group::give_up_killed(int seat) {
    auto& one = known_[seat];
    if (!one.running() || one.wait_status || events_.now() != run_phase::running) return;
    events_.say(fmt::format("error: {} does not end by SIGKILL; it is left behind, and ends once the kernel lets it",
                            known_.name_of(one)));
    on_message(ranks_[seat], wire::ended{.wait_status = SIGKILL});
    ranks_.give_up(seat);
    on_message(ranks_[seat], wire::gone{});
}

void remote_group::on_message(remote_rank& rank, wire::member_packet const& packet) {
    if (world_ && events_.now() == run_phase::running) world_->take(rank.job.who.rank, packet.bytes);
}

/// Tells the others at once that it has ended. Returns true if they can go on without it and its end needs no further question.
bool remote_group::tell_members(rank_evidence const& one) {
    if (!world_ || events_.now() != run_phase::running) return false;
    auto const fault = one.ended_well() ? std::nullopt : find_end_fault(*one.wait_status, one.memory);
    world_->note_end(one.rank, !fault, fault ? fmt::format("{} {}", known_.name_of(one), fault->what) : "");
    world_->tell_lost();
    std::string why_not;
    return !one.was_asked() && !known_.deciding && world_->can_go_on(why_not);
}

/// Leaves out ranks whose program has ended, and silent ones, which end by themselves, at the latest when their shim misses the
/// launcher.
bool remote_group::goes_on_without(verdict const& judged) {
    constexpr std::array causes{failure_cause::rank_end, failure_cause::node, failure_cause::watcher, failure_cause::daemon};
    if (std::ranges::find(causes, judged.cause) == causes.end() || !world_) return false;
    for (auto const& one : judged.culprits)
        if (auto& rank = known_[one.rank]; !rank.wait_status)
            world_->note_end(one.rank, false, fmt::format("{} is lost", known_.name_of(rank)),
                             judged.cause == failure_cause::node);
    if (!can_go_on(world_)) return false;
    for (auto const& one : judged.culprits)
        if (!known_[one.rank].wait_status) ranks_.give_up(one.rank), output_.finish(one.rank);
    known_.first_lost = known_.first_orphan = known_.first_killed = -1;
    world_->tell_lost();
    world_->go_on();
    return true;
}

bool remote_group::take_hosts(host_pool const& hosts) {
    if (!world_ || !world_->takes_hosts()) return false;
    world_->take_hosts(hosts);
    return true;
}

/// The rank is placed and begins at once, since the others run.
void remote_group::begin_late(remote_rank& rank) {
    questions_.note_alive(rank.job.who.rank);
    spares_.note_place(rank);
    world_->place_newcomer(rank.job.who.rank, {rank.job.who, rank.place.address});
    rank.link.send(wire::encode(ranks_.make_go()));
}

/// The others have gone on without it.
void remote_group::note_left(rank_evidence& one) {
    one.left_early = false;
    if (world_) world_->note_end(one.rank, true, {});
}

void remote_group::begin(generation const& now, std::vector<int> const& seats, std::string const& why) {
    number_anew(now, seats);
    auto const whole_why = spares_.log().note_generation(now, seats, why);
    for (int const seat : seats) {
        auto who = ranks_[seat].job.who;
        who.rank = known_[seat].number;
        output_.set_tag(seat, output_format(options_, who, now.number));
    }
    events_.on_generation(now, whole_why);
}

}  // namespace muster
