#include "launch/run/local_group.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/observe/container_start.hpp"
#include "launch/observe/process_sight.hpp"
#include "launch/observe/working_process.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/record/run_record.hpp"
#include "launch/run/prepare_run.hpp"
#include "launch/samples/gpu_reader.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/session_dir.hpp"
#include "launch/system/signals.hpp"
#include "launch/watch/failure_report.hpp"

namespace muster {

namespace {

using state = rank_evidence::state;

/// Ranks, and mostly the run with them, end at about the same time.
constexpr duration forget_after{0.05};

constexpr duration shortest_patience_with_killed{1};
constexpr duration longest_exit{60};  ///< for processes that are ending: freeing much memory, or a GPU's driver, takes long

/// Says when to search ranks that have not connected for an MPI library that started alone. The first intervals are shorter than
/// any MPI_Init of Open MPI; later ones grow.
constexpr std::array mpi_checks{duration(0.1), duration(0.2), duration(0.35), duration(0.5),
                                duration(1),   duration(2),   duration(5),    duration(15)};

/// Returns whether the kernel has begun to remove all of them.
bool all_leave(std::vector<pid_t> const& pids) {
    return std::ranges::all_of(pids, [](pid_t pid) { return is_exiting(pid); });
}

/// Reaps children that have ended. Returns false if no child or descendant is left; this process is their subreaper.
bool reap() {
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    return !(pid < 0 && errno == ECHILD);
}

}  // namespace

local_group::local_group(run_context const& run, event_loop& loop, output_writer& writer, group_events& events)
    : rank_group(run, events), run_(run), loop_(loop), writer_(writer), output_(loop, writer), spare_log_(run, known_, events) {
    known_.started = true;
}

void local_group::add(child_rank rank) {
    rank.out.close_child_end();
    rank.err.close_child_end();
    rank.events.close_child_end();
    if (known_.hosts.empty()) known_.hosts = {rank.who.host};
    auto& known = known_.ranks.emplace_back(rank_evidence{.rank = rank.who.rank, .spare = rank.spare, .now = state::running});
    if (auto const& gpu = rank.place.device) known.gpu_index = gpu->index, known.gpu_uuid = gpu->uuid;
    if (rank.spare >= 0) {
        known.plays = rank_evidence::part::coming;
        known_.members.push_back(-1);
        spares_ = rank.spare + 1;
        spare_log_.note_place(rank.who.rank, describe_spare(rank.spare, rank.who.host, rank.place));
    }
    ranks_.push_back(std::move(rank));
}

void local_group::serve(pmix::server& pmix, pmix::pmi1_server& pmi1, int master_port) {
    pmix_ = &pmix;
    pmi1_ = &pmi1;
    master_port_ = master_port;
}

void local_group::start() {
    for (auto& rank : ranks_) watch(rank);
    loop_.watch_readable(pmix_->event_fd(), [this] { poll_pmix(); });
    loop_.watch_readable(pmi1_->event_fd(), [this] { on_pmi_events(pmi1_->poll()); });
    if (ranks_.size() > 1)
        for (auto const when : mpi_checks) loop_.after(when, [this] { detect_mpi(); });
    if (unstarted_) events_.judge([this](evidence const&) { return *unstarted_; });
}

void local_group::watch(child_rank& rank) {
    for (auto* stream : {&rank.out, &rank.err}) output_.add(*stream, [this, &rank, stream] { on_output(rank, *stream); });
    rank.events.watch(loop_, [this, seat = rank.who.rank](std::string_view packet) { world_->take(seat, packet); });
}

void local_group::go_on_in_place(replacement start) {
    replace_ = std::move(start);
    std::vector<member_world::place> places;
    for (auto const& rank : ranks_)
        if (rank.spare < 0) places.push_back({rank.who});
    world_.emplace(loop_, run_, std::move(places), calls_of_members());
    for (auto const& one : run_.present().members) places_.push_back(one.at);
    for (auto const& rank : ranks_)
        if (rank.spare >= 0) places_.push_back({places_.front().host, rank.planned});
    for (auto const& rank : ranks_)
        if (rank.spare >= 0) world_->add_spare({rank.who}, slot_of(rank.planned));
}

slot local_group::slot_of(int planned) const {
    return places_.at(static_cast<std::size_t>(planned));
}

member_world::group local_group::calls_of_members() {
    auto const rank_of = [this](int seat) -> child_rank& { return ranks_[static_cast<std::size_t>(seat)]; };
    return {
        .send = [rank_of](int seat, std::string const& packet) { rank_of(seat).events.send(packet); },
        .look =
            [this](std::vector<int> const& seats, auto then) {
                look_at_stopped(seats, [then = std::move(then)](held_ranks const& held) { then(held.stopped); });
            },
        .kill = [this](int seat) { kill_rank(seat); },
        .say = [this](std::string const& line) { events_.say(line); },
        .begin = [this](generation const& now, std::vector<int> const& seats, std::string const& why) { begin(now, seats, why); },
        .start = [this, rank_of](int seat) { start_spare(rank_of(seat).planned); },
        .start_at = [this](slot const& at) { start_newcomer(at); },
        .look_at_hosts = [this] { events_.look_at_hosts(); },
        .waits = [this](int seat) { spare_log_.note_wait(seat); },
        .give_up = [this](std::string const& why) { give_up_members(why); }};
}

void local_group::look_at_stopped(std::vector<int> const& seats, stopped_taker then) {
    brief_look look;
    held_ranks held;
    for (int const seat : seats) {
        auto const pid = ranks_[static_cast<std::size_t>(seat)].pid;
        if (pid <= 0) continue;
        if (look.is_stopped(pid))
            held.stopped.push_back(seat);
        else if (auto wait = look.find_blocked(pid))
            held.blocked.emplace(seat, std::move(*wait));
    }
    then(held);
}

/// Adds a process with the cores and the GPU of that place.
child_rank& local_group::start_spare(int planned) {
    auto next = replace_(planned, spares_, slot_of(planned).host);
    next.who.rank = static_cast<int>(ranks_.size());
    add(std::move(next));
    watch(ranks_.back());
    return ranks_.back();
}

/// The ranks of this group cannot use hosts elsewhere.
bool local_group::take_hosts(host_pool const& hosts) {
    auto const is_here = [](pool_host const& one) {
        return is_this_host(node{one.name, one.name, one.slots, std::nullopt, std::nullopt});
    };
    if (!world_ || !world_->takes_hosts() || !std::ranges::all_of(hosts.hosts, is_here)) return false;
    world_->take_hosts(hosts);
    return true;
}

void local_group::start_newcomer(slot const& at) {
    auto const place = std::ranges::find(places_, at);
    auto const planned = static_cast<int>(place - places_.begin());
    if (place == places_.end()) places_.push_back(at);
    auto const& next = start_spare(planned);
    world_->add_newcomer({next.who}, at);
}

// ------------------------------------------------------------------------------------------------ what happens

/// The first rank that connects starts the library's server, which may fail.
void local_group::poll_pmix() try { on_pmi_events(pmix_->poll()); } catch (error const& e) {
    fail(failure_cause::never_came, e.what(), exit_code(e.code()));
}

void local_group::on_pmi_events(std::vector<pmix::server_event> const& events) {
    for (auto const& event : events) on_pmi_event(event);
}

void local_group::on_pmi_event(pmix::server_event const& event) {
    using kind = pmix::server_event::kind;
    if (event.what == kind::log) return writer_.write(STDERR_FILENO, without_controls(event.text));
    if (!known_.is_rank(event.rank)) return spdlog::debug("PMI event of rank {}, which is not of this job", event.rank);
    auto& rank = known_[event.rank];
    if (event.what == kind::connected) {
        // A script may run one MPI program after the other.
        rank.mpi = rank.wait_status ? rank_evidence::world::left : rank_evidence::world::inside;
        events_.on_world();
    } else if (event.what == kind::finalized) {
        rank.mpi = rank_evidence::world::left;
    } else if (!known_.deciding && !known_.abort) {
        known_.abort = evidence::abort_word{.rank = event.rank,
                                            .code = event.code,
                                            .by = "MPI_Abort or PMIx_Abort",
                                            .said = event.text == "N/A" ? "" : without_controls(event.text)};
        events_.judge(judge_cause);
    }
}

void local_group::on_child() {
    // All ends are gathered first and judged after the PMI events: a rank's events were queued before it ended.
    std::vector<child_rank*> ended;
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0)
        for (auto& rank : ranks_)
            if (auto& known = known_[rank.who.rank]; rank.pid == pid && !rank.group_gone) {
                rank.group_gone = ::kill(-pid, 0) != 0;  // its number may be used again
                if (known.wait_status) continue;         // it was given up
                known.note_end(status, run_.options.saved_code);
                known.now = state::ended;
                ended.push_back(&rank);
            }
    bool const childless = pid < 0 && errno == ECHILD;
    poll_pmix();
    on_pmi_events(pmi1_->poll());
    for (auto* rank : ended) note_end(*rank);
    if (world_) world_->tell_lost();
    for (auto* rank : ended) on_rank_end(*rank);
    if (events_.now() == run_phase::closing && childless) events_.on_closed();
}

/// The other ranks of an elastic run learn it before anything is decided, since they may wait for this one.
void local_group::note_end(child_rank const& rank) {
    if (!world_ || events_.now() != run_phase::running) return;
    auto const& known = known_[rank.who.rank];
    auto const fault = known.ended_well() ? std::nullopt : find_end_fault(*known.wait_status);
    world_->note_end(rank.who.rank, !fault, fault ? fmt::format("{} {}", known_.name_of(known), fault->what) : "");
}

bool local_group::goes_on_without(verdict const& judged) {
    if (judged.cause != failure_cause::rank_end || !can_go_on(world_)) return false;
    any_lost_ = true;
    world_->go_on();
    for (auto const& one : judged.culprits) kill_rank(one.rank);
    return true;
}

void local_group::begin(generation const& now, std::vector<int> const& seats, std::string const& why) {
    number_anew(now, seats);
    auto const whole_why = spare_log_.note_generation(now, seats, why);
    for (int const seat : seats) {
        auto& rank = ranks_[static_cast<std::size_t>(seat)];
        auto who = rank.who;
        who.rank = known_[seat].number;
        for (auto* stream : {&rank.out, &rank.err}) stream->set_tag(output_format(run_.options, who, now.number));
    }
    events_.on_generation(now, whole_why);
}

void local_group::on_rank_end(child_rank& rank) {
    auto& known = known_[rank.who.rank];
    if (!known.is_rank()) return on_spare_end(rank);
    if (known.left_out() && events_.now() == run_phase::running) return on_leaver_end(rank);
    if (rank.spare < 0) pmix_->report_exit(known.rank, *known.wait_status);
    if (!std::exchange(forget_due_, true))
        loop_.after(forget_after, [this] {
            forget_due_ = false;
            pmix_->forget_ended();
        });
    if (std::ranges::find(known_.stuck, known.rank) == known_.stuck.end())
        known.memory = memory_verdict_of(*known.wait_status, memory_);
    known.settled = true;
    known.left_early = known.ended_well();
    if (rank.mpi.uses_mpi_elsewhere()) known.mpi_elsewhere = rank.mpi.library;
    known_.reader_gone = writer_.broken(STDOUT_FILENO);
    std::string why_not;
    events_.on_rank_end(known.rank, world_ && world_->can_go_on(why_not));
    known.now = state::gone;
    rank.waits = {};
    events_.on_rank_gone();
}

// ------------------------------------------------------------------------------------------------ spares

/// The other ranks have gone on without it.
void local_group::on_leaver_end(child_rank& rank) {
    auto& known = known_[rank.who.rank];
    known.settled = true;
    known.now = state::gone;
    rank.waits = {};
    if (!rank.group_gone) ::kill(-rank.pid, SIGKILL);
    events_.on_rank_gone();
    events_.look_at_hosts();
}

/// The ranks go on; until another spare starts, the next loss has one spare less.
void local_group::on_spare_end(child_rank& spare) {
    auto& known = known_[spare.who.rank];
    auto const fault = find_end_fault(*known.wait_status, memory_verdict_of(*known.wait_status, memory_));
    auto const what = fault ? fault->what : describe_end(*known.wait_status);
    known.settled = true;
    known.now = state::gone;
    spare.waits = {};
    if (!spare.group_gone) ::kill(-spare.pid, SIGKILL);
    if (events_.now() == run_phase::running) {
        bool const by_hosts = run_.options.discovery.given();
        bool const wanted = !world_ || world_->is_wanted(known.rank);
        bool const again = wanted && (by_hosts || (run_.options.waiting_spares() > 0 && !known.ended_well()));
        double const now = seconds_now();
        auto const at = slot_of(spare.planned);
        auto& slots = by_hosts ? run_.outcome.hosts : spare_slots_;
        if (again) slots.note_failure(at, run_.options.cool_down, now, by_hosts ? draw_chance() : 0);
        duration const wait(again ? slots.time_left(at, now) : 0);
        spare_log_.note_end(known.rank, what,
                            !wanted ? std::string(spare_log::not_needed)
                            : again ? fmt::format("another takes its place in {}", format_duration(wait))
                                    : "no other takes its place");
        if (again && !by_hosts) loop_.after(wait, [this, planned = spare.planned] { replace_spare(planned); });
    }
    events_.on_rank_gone();
    events_.look_at_hosts();
}

void local_group::replace_spare(int planned) {
    if (events_.now() != run_phase::running) return;
    try {
        auto const& next = start_spare(planned);
        world_->add_spare({next.who}, slot_of(planned));
    } catch (error const& problem) {
        events_.say(fmt::format("note: no spare is started: {}", problem.what()));
    }
}

void local_group::end_spares() {
    close_world();
    signal_spares(SIGTERM);
    signal_spares(SIGCONT);
    loop_.after(run_.options.grace, [this] { kill_late(); });
}

void local_group::on_output(child_rank& rank, rank_stream& stream) {
    rank.last_written = &stream;
    rank.last_output = event_loop::clock::now();
    events_.on_output();
    if (ranks_.size() < 2 || !known_[rank.who.rank].is_rank()) return;
    // A rank that prints the size of its world has initialised MPI by now; one that has loaded MPI may still do so.
    bool const again = !rank.mpi.library.empty() && rank.last_output - rank.looked_at > mpi_look_again_after;
    if (!std::exchange(rank.spoke, true) || again) detect_mpi(rank);
}

/// A rank of an interpreter (python with mpi4py) shows only at run time that it uses MPI.
void local_group::detect_mpi() {
    for (auto& rank : ranks_)
        if (events_.now() == run_phase::running) detect_mpi(rank);
}

void local_group::detect_mpi(child_rank& rank) {
    auto const& known = known_[rank.who.rank];
    if (!known.is_rank() || !known.running() || known.connected() || rank.mpi.uses_mpi_elsewhere()) return;
    rank.mpi = look_for_mpi(rank.pid);
    rank.looked_at = event_loop::clock::now();
}

// ------------------------------------------------------------------------------------------------ signals and ends

/// Signals the whole process group of each rank, even if the rank itself has ended: its children may live.
void local_group::signal_ranks(int signal_number) noexcept {
    for (auto const& rank : ranks_)
        if (rank.pid > 0 && !rank.group_gone) ::kill(-rank.pid, signal_number);
}

void local_group::signal_spares(int signal_number) noexcept {
    for (auto const& rank : ranks_)
        if (auto const& known = known_[rank.who.rank]; !known.is_rank() && known.here() && !rank.group_gone)
            ::kill(-rank.pid, signal_number);
}

void local_group::signal(int number, bool notice) {
    if (notice)
        notify_descendants(number, noticed::that_catch);
    else
        signal_ranks(number);
}

void local_group::end(int signal_number) {
    close_world();
    auto const& grace = run_.options.grace;
    grace_ends_ = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(grace);
    signal_opened_containers(loop_, signal_number, *grace_ends_);  // before the processes that should end get the signal
    signal_ranks(signal_number);
    signal_ranks(SIGCONT);  // a stopped process takes no signal
    auto const terminate = [this] {
        if (events_.now() == run_phase::stopping) signal_ranks(SIGTERM);
    };
    set_grace_timers(loop_, signal_number, grace, terminate, [this] { kill_late(); });
}

void local_group::close_world() {
    if (world_) world_->close();
    for (auto& rank : ranks_) rank.events.close();
}

void local_group::kill_late() {
    auto const late = known_.count_running();
    if (events_.now() != run_phase::stopping || late.empty()) return;
    events_.say(fmt::format("killing {} that did not end within {} (--grace)", late, format_duration(run_.options.grace)));
    kill();
    loop_.after(patience_with_killed(), [this] { give_up_killed(event_loop::clock::now()); });
}

void local_group::give_up_killed(event_loop::clock::time_point since) {
    if (events_.now() != run_phase::stopping) return;
    std::vector<pid_t> rest;
    for (auto const& rank : known_.ranks)
        if (rank.here()) rest.push_back(ranks_[static_cast<std::size_t>(rank.rank)].pid);
    if (all_leave(rest) && event_loop::clock::now() - since < longest_exit)
        return loop_.after(patience_with_killed(), [this, since] { give_up_killed(since); }), void();
    give_up_rest();
    events_.on_rank_gone();
}

duration local_group::patience_with_killed() const {
    return std::max(run_.options.grace, shortest_patience_with_killed);
}

/// SIGKILL does not end a process in an uninterruptible wait, such as for a file system or a driver that does not answer.
void local_group::give_up_rest() {
    std::vector<int> rest;
    for (auto const& rank : known_.ranks)
        if (rank.here()) rest.push_back(rank.rank);
    say_unkillable(rest);
    rank_group::give_up_rest();
}

void local_group::say_unkillable(std::vector<int> const& seats) {
    constexpr std::size_t most_said = 16;
    process_table const processes;
    for (std::size_t i = 0; i < std::min(seats.size(), most_said); ++i) {
        auto const& known = known_[seats[i]];
        auto const sight = processes.inspect(ranks_[static_cast<std::size_t>(seats[i])].pid, 0);
        events_.say(
            fmt::format("error: {}, pid {}, does not end by SIGKILL: {}; it is left behind, and ends once the kernel lets it",
                        known_.name_of(known), sight.pid, describe_state(sight)));
    }
    if (seats.size() > most_said) events_.say(fmt::format("error: so are {} more ranks", seats.size() - most_said));
}

/// The others go on, and do not wait for it at the end.
void local_group::kill_rank(int seat) {
    auto const& rank = ranks_[static_cast<std::size_t>(seat)];
    if (rank.group_gone) return;
    ::kill(-rank.pid, SIGKILL);
    loop_.after(patience_with_killed(), [this, seat] {
        if (known_[seat].running() && events_.now() == run_phase::running) give_up(ranks_[static_cast<std::size_t>(seat)]);
    });
}

/// SIGKILL does not end it, and it does nothing more: for the others it has ended.
void local_group::give_up(child_rank& rank) {
    auto& known = known_[rank.who.rank];
    say_unkillable({known.rank});
    known_.stuck.push_back(known.rank);
    known.note_end(SIGKILL, run_.options.saved_code);
    known.now = state::ended;
    note_end(rank);
    if (world_) world_->tell_lost();
    on_rank_end(rank);
}

void local_group::kill() {
    signal_ranks(SIGKILL);
    signal_descendants(SIGKILL);
}

/// Processes that ranks left behind, whatever their sessions, get a moment to end by themselves, unless the run failed.
void local_group::close(bool failed, int, int) {
    if (!reap()) return events_.on_closed();
    if (!known_.stuck.empty()) {
        signal_descendants(SIGKILL);
        return loop_.after(leftover_patience, [this] { leave_rest(); }), void();
    }
    if (failed)
        end_leftovers(SIGTERM);
    else
        loop_.after(leftover_patience, [this] { end_leftovers(SIGTERM); });
}

void local_group::end_leftovers(int signal_number) {
    if (events_.now() != run_phase::closing) return;
    end_descendants(signal_number);
    auto const now = event_loop::clock::now();
    if (signal_number == SIGKILL && !killed_since_) killed_since_ = now;
    if (killed_since_ && now - *killed_since_ > patience_with_killed() &&
        !(all_leave(descendants()) && now - *killed_since_ < longest_exit))
        return leave_rest();
    loop_.after(wait_before_kill(signal_number, grace_ends_, event_loop::clock::now()), [this] { end_leftovers(SIGKILL); });
}

/// Stops waiting for processes that SIGKILL does not end.
void local_group::leave_rest() {
    if (events_.now() != run_phase::closing) return;
    if (auto const rest = descendants().size(); rest > 0 && known_.stuck.empty())
        events_.say(fmt::format("{} that ranks have started {} not end by SIGKILL: left behind",
                                rest == 1 ? "a process" : fmt::format("{} processes", rest), rest == 1 ? "does" : "do"));
    events_.on_closed();
}

verdict local_group::finish(bool failed) {
    output_.finish();
    if (failed || any_lost_) sweep_shared_memory(wall_start_);
    bool const lost =
        std::ranges::any_of(ranks_, [](auto const& r) { return !(r.out.file_fault().empty() && r.err.file_fault().empty()); });
    return lost ? blame_run(failure_cause::output, {}, exit_code(errc::io)) : verdict{};  // the file was named at once
}

void local_group::resume_output() {
    output_.resume();
    if (writer_.broken(STDOUT_FILENO)) output_.close_streams_to(STDOUT_FILENO);
}

void local_group::read_last_lines(int number) {
    auto& rank = ranks_[static_cast<std::size_t>(number)];
    for (auto* stream : {&rank.err, &rank.out}) output_.read_for_now(*stream);
    known_[number].last_lines = rank.err.last_lines();
}

// ------------------------------------------------------------------------------------------------ what ranks are doing

std::vector<sampled_rank> local_group::ranks_to_sample() const {
    std::vector<sampled_rank> found;
    for (auto const& rank : ranks_) {
        if (rank.pid <= 0 || !known_[rank.who.rank].running()) continue;
        auto& one = found.emplace_back(sampled_rank{.rank = rank.who.rank, .pid = rank.pid});
        if (rank.place.device) one.gpu = gpu_number(*rank.place.device);
        if (rank.last_written != nullptr) one.silent_s = duration(event_loop::clock::now() - rank.last_output).count();
        rank.waits.read(one);
        one.metric = rank.out.last_metric_text().empty() ? rank.err.last_metric_text() : rank.out.last_metric_text();
    }
    return found;
}

void local_group::inspect(rows_taker then) {
    process_table const processes;
    process_sight sight;
    then(known_.rows([&](int number) {
        auto const& rank = ranks_[static_cast<std::size_t>(number)];
        sight = processes.inspect(rank.pid, master_port_);
        if (rank.last_written != nullptr)
            add_output(sight, rank.last_written->last_lines(), duration(event_loop::clock::now() - rank.last_output).count());
        return &sight;
    }));
}

void local_group::ask_about(std::string const& command, std::vector<int> const& whom, rows_taker then) {
    auto const end = event_loop::clock::now() + hang_command_limit;
    inspect([&](std::vector<rank_row> rows) {
        std::vector<rank_row> asked;
        for (auto& row : rows) {
            if (std::ranges::find(whom, row.seat) == whom.end()) continue;
            auto const left = std::chrono::ceil<std::chrono::milliseconds>(end - event_loop::clock::now());
            if (left.count() <= 0) {
                events_.say("--on-hang: no time is left for the other ranks");
                break;
            }
            row.sight.said = muster::ask_about(command, row.sight.pid, run_.inherited, left);
            asked.push_back(std::move(row));
        }
        then(asked);
    });
}

}  // namespace muster
