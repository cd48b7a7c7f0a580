#include "launch/shim/rank_shim.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "launch/hardware/discover_topology.hpp"
#include "launch/observe/container_start.hpp"
#include "launch/observe/mpi_use.hpp"
#include "launch/observe/process_sight.hpp"
#include "launch/observe/working_process.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/ranks/output_writer.hpp"
#include "launch/ranks/rank_variables.hpp"
#include "launch/remote/host_agent.hpp"
#include "launch/samples/gpu_reader.hpp"
#include "launch/system/session_dir.hpp"
#include "launch/system/signal_table.hpp"
#include "launch/system/signals.hpp"
#include "pmix/member_message.hpp"

namespace muster {

shim_placement place_rank(wire::job const& job, environment const& variables, int launcher_fd) {
    auto const& who = job.who;
    if (auto const ports = job.variables.get("MUSTER_PORTS")) use_ports(parse_port_range(*ports, "MUSTER_PORTS"));
    auto const machine = discover_topology(who.host, current_affinity(), variables);
    auto const bindings = bind_ranks(machine, job.place, who.local_size);
    shim_placement found;
    found.where = bindings.at(static_cast<std::size_t>(who.local_rank));
    // One shim a node tells of all its GPUs.
    if (who.local_rank == 0 && job.sample > duration(0))
        found.sampled = gpus_to_sample(machine, bindings, is_gpu_share_unclear(machine, job.place));

    // MASTER_PORT and JAX's port lie on rank 0's node; each rank has its own port for TensorFlow.
    int const own_ports = (who.rank == 0 ? 2 : 0) + (job.hold_worker_port ? 1 : 0);
    if (own_ports > 0) found.ports.emplace(own_ports);
    auto& ready = found.ready;
    if (found.where.device) {
        ready.gpu_index = found.where.device->index;
        ready.gpu_uuid = found.where.device->uuid;
    }
    ready.cpus = found.where.cores.empty() ? "" : found.where.cores.to_list();
    ready.nic = found.where.nic.value_or("");
    ready.why = found.where.why;
    if (who.local_rank == 0) ready.note = share_note(machine, job.place);
    ready.address =
        !job.own_address.empty() ? job.own_address : reachable_address(job.address, job.network_interface, launcher_fd);
    if (who.rank == 0) {
        ready.master_port = found.ports->numbers()[0];
        ready.jax_port = found.ports->numbers()[1];
    }
    if (job.hold_worker_port) ready.worker_port = found.ports->numbers().back();
    return found;
}

/// Returns the folder of the engine's PMIx server, or of muster's server on this node, if this user may write there; else "".
std::string folder_of_server(environment const& variables) {
    auto const folder = variables.get_or("PMIX_SERVER_TMPDIR", "");
    return !folder.empty() && ::access(folder.c_str(), W_OK | X_OK) == 0 ? folder : "";
}

environment program_variables(wire::job const& job, wire::go const& go, binding const& where, environment const& shim_variables) {
    environment own = rank_environment(job.variables, shim_variables, job.own_step);
    auto const interface = job.network_interface.empty() ? interface_towards(go.address) : job.network_interface;
    if (!interface.empty()) own.set_default("GLOO_SOCKET_IFNAME", interface);
    for (auto const& [name, value] : interface_variables(job.network_interface))
        if (name != "OMPI_MCA_btl_tcp_if_include" || !own.has("OMPI_MCA_btl_tcp_if_exclude")) own.set_default(name, value);
    rendezvous const point{go.address, go.master_port, go.jax_port, go.workers};
    auto const python = keep_present({job.python_package, job.python_horovod}, job.who.host);
    complete_variables(own, {job.who, where, point, job.exports, job.command, python, folder_of_server(own)});
    auto const& parts = job.kept_parts;
    int const part = parts.empty() ? job.who.rank : parts.at(static_cast<std::size_t>(job.who.rank));
    if (job.keeps_state) own.set(elastic::kept_state_variable, fmt::format("{}:{}", part, job.kept_file));
    return own;
}

namespace {

constexpr std::array mpi_checks{duration(0.1), duration(0.5), duration(2), duration(5), duration(15)};
constexpr duration suspension_check{1};
constexpr duration same_signal_window{0.5};
constexpr int most_kills = 50;         ///< 10 s
constexpr duration pause_of_kills{5};  ///< between further ones
constexpr duration brief_drain{output_writer::brief_drain_s};

}  // namespace

rank_shim::rank_shim(environment variables, shim_parents parents)
    : signals_(take_signals(taken_signals(process_kind::shim), "the rank shim")),
      variables_(std::move(variables)),
      parents_(std::move(parents)),
      parent_(parents_.guard != 0 ? parents_.guard : parents_.daemon),
      started_(std::time(nullptr)),
      host_(short_host_name()),
      line_(loop_, variables_, host_,
            {[this](wire::message const& message) { std::visit([this](auto const& content) { on_message(content); }, message); },
             [this](mpi_event const& event) { on_event(event); }, [this] { repeat_end(); },
             [this](std::string const& reason) { on_launcher_gone(reason); }}) {
    ignore_signals(process_kind::shim);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of the program become ours, so that none is missed
    // SIGCONT tells: this process may be stopped, and nobody else ends the rank then.
    ::prctl(PR_SET_PDEATHSIG, SIGCONT);
    loop_.watch_readable(signals_.get(), [this] { on_signal(); });
}

rank_shim::~rank_shim() = default;

int rank_shim::run() {
    if (parent_is_gone()) return 1;  // before it could tell
    line_.open();
    loop_.run();
    wake_agent();
    return exit_code_;
}

/// The agent has lost what it did not pass on; this tells the launcher again how the rank stands.
void rank_shim::repeat_end() {
    if (wait_status_ && !is_running(state_)) tell_end();
    if (state_ == shim_state::gone || state_ == shim_state::called_off) tell(wire::gone{});
}

void rank_shim::tell_end() {
    tell(wire::ended{*wait_status_, err_ ? err_->last_lines() : std::string(), asked_to_end_,
                     memory_verdict_of(*wait_status_, memory_)});
}

/// Follows the table; returns false if the event changes nothing.
bool rank_shim::take(shim_event what, int signal_number) {
    auto const* const row = find_transition(state_, what);
    if (row == nullptr) return false;
    state_ = row->to;
    act_on(row->then, signal_number);
    return true;
}

void rank_shim::act_on(shim_effect what, int signal_number) {
    switch (what) {
        case shim_effect::none: return;
        case shim_effect::tell_gone: return tell(wire::gone{});
        case shim_effect::leave: return loop_.stop();
        case shim_effect::stop: signal_descendants(SIGSTOP); return;
        case shim_effect::go_on: signal_descendants(SIGCONT); return;
        case shim_effect::end: return end_rank(signal_number);
        case shim_effect::kill:
            if (!grace_ends_) grace_ends_ = event_loop::clock::now();
            return end_leftovers(SIGKILL);
        case shim_effect::report_end: return report_end();
        case shim_effect::drain:
            if (output_) output_->finish();
            return conclude_soon();
        case shim_effect::hurry: grace_ends_ = event_loop::clock::now(); return conclude_soon();
        case shim_effect::conclude: return conclude();
    }
}

void rank_shim::on_message(wire::job const& job) {
    if (find_transition(state_, shim_event::is_placed) == nullptr) return;
    job_ = job;
    line_.set_lost_after(job_.lost_after);
    try {
        variables_ = with_given_gpus(std::move(variables_), job_.place.share);
        auto place = place_rank(job_, variables_, line_.fd());
        binding_ = std::move(place.where);
        sampled_ = std::move(place.sampled);
        ports_ = std::move(place.ports);
        tell(place.ready);
        take(shim_event::is_placed);
        line_.allow_direct();
    } catch (error const& e) {
        tell(wire::failed{e.what(), exit_code(e.code())});
    } catch (std::exception const& e) {
        tell(wire::failed{e.what(), exit_code(errc::internal)});
    }
}

void rank_shim::on_message(wire::go const& go) {
    if (find_transition(state_, shim_event::is_started) == nullptr) return;
    try {
        start(go);
        tell(wire::started{pid_});
        sampler_.emplace(
            loop_, sampled_node{job_.sample, job_.who.local_rank == 0, job_.network_interface, go.address, std::move(sampled_)},
            [this] { return rank_to_sample(); }, [this](node_sample const& look) { tell(wire::sampled{look}); });
        for (auto const when : mpi_checks) loop_.after(when, [this] { detect_mpi(); });
        if (parents_.guard != 0 || parents_.daemon_name == agent_process) follow_suspension();
        line_.watch_agent();
    } catch (program_error const& e) {
        tell(wire::failed{e.what(), e.exit_status()});
    } catch (error const& e) {
        tell(wire::failed{e.what(), exit_code(e.code())});
    } catch (std::exception const& e) {
        tell(wire::failed{e.what(), exit_code(errc::internal)});
    }
}

/// Passes the signal on, but does not end the rank.
void rank_shim::pass_on(int number, noticed whom) noexcept {
    if (is_notice(number))
        notify_descendants(number, whom);
    else
        signal_descendants(number);
}

void rank_shim::on_message(wire::signal const& signal) {
    if (signal.stop) {
        take(signal.number == SIGKILL ? shim_event::must_be_killed : shim_event::is_asked_to_end, signal.number);
        return;
    }
    if (!has_program(state_) || from_engine_.is_recent(signal.number)) return;
    from_launcher_.note(signal.number);
    pass_on(signal.number, signal.if_caught ? noticed::that_catch : noticed::all);
}

void rank_shim::on_message(wire::ping const& ping) {
    tell(wire::pong{ping.number, line_.missed_pings()});
}

/// Below 0 they are looks at who stands still, which come every few seconds: this thread forwards output, and other shims of the node do the same.
void rank_shim::on_message(wire::inspect const& inspect) {
    wire::seen seen{inspect.number, {}};
    if (pid_ > 0 && !wait_status_ && inspect.number < 0) {
        brief_look look;
        seen.sight.pid = look.working_process(pid_);
        if (is_held(static_cast<pid_t>(seen.sight.pid)))
            seen.sight.state = 'T';
        else if (auto const wait = look.find_blocked(pid_))
            seen.sight.state = 'D', seen.sight.where = wait->where, seen.sight.waits = wait->number;
    } else if (pid_ > 0 && !wait_status_) {
        seen.sight = process_table().inspect(pid_, master_port_);
        if (last_written_ != nullptr)
            add_output(seen.sight, last_written_->last_lines(), duration(event_loop::clock::now() - last_output_).count());
        if (!inspect.command.empty() && seen.sight.pid > 0)
            seen.sight.said = ask_about(inspect.command, seen.sight.pid, variables_, hang_command_limit);
    }
    tell(seen);
}

void rank_shim::on_message(wire::bye const& bye) {
    exit_code_ = bye.exit_code;
    dismissed_ = true;
    take(shim_event::is_dismissed, SIGTERM);  // a program that still runs was given up, since this process stood still
}

void rank_shim::on_message(wire::room const& room) {
    if (!sender_) return;
    sender_->add_room(room.bytes);
    output_->resume();
    if (sender_->sent_all()) take(shim_event::output_is_sent);
}

void rank_shim::on_signal() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        int const s = static_cast<int>(info.ssi_signo);
        if (s == SIGCHLD)
            on_child();
        else if ((s == SIGHUP || s == SIGCONT) && parent_is_gone())
            on_parent_gone();
        else
            on_engine_signal(s);
    }
}

/// The engine sends signals to the whole process group that it knows, so the program has had it as well where no guard is in between.
/// Before there is a program, a request to end is for this process.
void rank_shim::on_engine_signal(int number) {
    bool const is_new = !from_launcher_.is_recent(number);
    from_engine_.note(number);
    if (parents_.guard != 0 && is_new && has_program(state_)) pass_on(number, noticed::all);
    if (!ends_the_run(number)) return;
    asked_to_end_ = true;
    if (!grace_ends_) tell(wire::asked_to_end{number});
    if (take(shim_event::is_ended_by_daemon)) exit_code_ = 128 + number;
}

void rank_shim::sent_signal::note(int signal_number) {
    number = signal_number;
    at = event_loop::clock::now();
}

bool rank_shim::sent_signal::is_recent(int signal_number) const {
    return number == signal_number && event_loop::clock::now() - at < same_signal_window;
}

void rank_shim::on_child() {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == pid_ && !wait_status_) wait_status_ = status;
    if (wait_status_) take(shim_event::program_ends);
    check_leftovers();
}

void rank_shim::report_end() {
    if (err_ && err_->open()) output_->read_for_now(*err_);
    report_abort();
    tell_end();
    line_.tell_agent(mpi_event::kind::settled);
    if (!descendants().empty()) loop_.after(grace_ends_ ? duration(0) : leftover_patience, [this] { end_leftovers(SIGTERM); });
}

void rank_shim::end_rank(int signal_number) {
    events_.close();
    grace_ends_ = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(job_.grace);
    signal_opened_containers(loop_, signal_number, *grace_ends_);
    if (!from_engine_.is_recent(signal_number)) signal_descendants(signal_number);
    from_launcher_.note(signal_number);
    signal_descendants(SIGCONT);  // a stopped process takes no signal
    auto const terminate = [this] {
        if (state_ == shim_state::ending) signal_descendants(SIGTERM);
    };
    set_grace_timers(loop_, signal_number, job_.grace, terminate, [this] { end_leftovers(SIGKILL); });
}

void rank_shim::end_leftovers(int signal_number) {
    if (state_ >= shim_state::draining) return;
    end_descendants(signal_number);
    check_leftovers();
    if (state_ >= shim_state::draining) return;
    if (signal_number == SIGKILL && ++kills_ > most_kills && wait_status_) {
        // In an uninterruptible wait, or of another user: no signal of ours ends it.
        auto const left = descendants().size();
        say(fmt::format("rank {} on {}: SIGKILL does not end {} process{}; leaving {}", job_.who.rank, host_, left,
                        left == 1 ? "" : "es", left == 1 ? "it" : "them"));
        take(shim_event::is_cleared);
        return;
    }
    auto const wait =
        kills_ > most_kills ? pause_of_kills : wait_before_kill(signal_number, grace_ends_, event_loop::clock::now());
    loop_.after(wait, [this] { end_leftovers(SIGKILL); });
}

void rank_shim::check_leftovers() {
    bool const waits = state_ == shim_state::leftovers || state_ == shim_state::ending_leftovers;
    if (waits && descendants().empty()) take(shim_event::is_cleared);
}

/// Nothing is left below us: the shim sends the last output first, then the end.
void rank_shim::conclude_soon() {
    if (!sender_ || sender_->sent_all())
        take(shim_event::output_is_sent);
    else if (state_ == shim_state::draining_briefly)
        loop_.after(brief_drain, [this] { take(shim_event::moment_is_over); });
}

void rank_shim::conclude() {
    for (auto const* stream : {&out_, &err_})
        if (*stream && !(*stream)->file_fault().empty()) tell(wire::failed{(*stream)->file_fault(), exit_code(errc::io)});
    // The node's other ranks may use the rest: the last of them removes it.
    if (grace_ends_ || !wait_status_ || *wait_status_ != 0) sweep_shared_memory(started_);
    tell(wire::gone{});
    if (!line_.is_open() || dismissed_) take(shim_event::is_dismissed);
}

void rank_shim::on_launcher_gone(std::string const& reason) {
    if (exit_code_ == 0) exit_code_ = 1;
    dismissed_ = true;
    if (sender_) sender_->close();
    if (output_) output_->resume();  // what comes now is dropped, and must not hold the rank
    auto const* const row = find_transition(state_, shim_event::is_dismissed);
    if (row != nullptr && row->then == shim_effect::end)  // otherwise nothing is left to end, or its end has been noted
        say(fmt::format("rank {} on {}: lost the connection to muster run ({}): ending this rank", job_.who.rank, host_, reason));
    take(shim_event::is_dismissed, SIGTERM);
}

/// The guard, or the daemon that the guard tells of.
bool rank_shim::parent_is_gone() const {
    return ::getppid() != parent_ || (parents_.guard != 0 && parent_of(parent_) != parents_.daemon);
}

/// The daemon that started this process is gone, and with it the way of the output, or it has killed the guard, to end the rank.
/// Nothing else would.
void rank_shim::on_parent_gone() {
    asked_to_end_ = true;
    line_.leave_agent_if_answered();
    if (parents_.guard != 0 && is_alive(parents_.daemon) && ::getppid() != parent_)
        tell(wire::asked_to_end{SIGKILL});
    else
        tell(wire::orphaned{parents_.daemon_name});
    if (!take(shim_event::is_ended_by_daemon)) take(shim_event::is_asked_to_end, SIGTERM);
}

void rank_shim::detect_mpi() {
    if (!is_running(state_) || job_.who.world_size < 2 || mpi_ == mpi_sight::told) return;
    looked_at_ = event_loop::clock::now();
    mpi_ = mpi_sight::none;
    for (pid_t const pid : descendants()) {  // the program may be below a script
        auto const sight = look_for_mpi(pid);
        if (!sight.library.empty()) mpi_ = mpi_sight::loaded;
        if (!sight.uses_mpi()) continue;
        mpi_ = mpi_sight::told;
        return tell(wire::used_mpi{sight.library});
    }
}

void rank_shim::on_event(mpi_event const& event) {
    if (event.what == mpi_event::kind::aborted)
        tell(wire::aborting{job_.who.rank, event.code});
    else if (event.what == mpi_event::kind::settled)
        tell(wire::settled{});
    else
        tell(wire::met{event.what == mpi_event::kind::finalized});
}

/// The guard is stopped by engines that stop their ranks. PBS suspends a job by stopping the sessions that it has started itself: those of
/// the daemon, or of the launcher above it or its engine, but not the engine's. None of them is this process' own.
void rank_shim::follow_suspension() {
    if (state_ != shim_state::running && state_ != shim_state::suspended) return;
    auto const above = parent_of(parents_.daemon);
    bool const stopped = is_stopped(parent_) || is_stopped(parents_.daemon) || is_stopped(above) ||
                         (parents_.guard == 0 && is_stopped(parent_of(above)));
    take(stopped ? shim_event::job_stops : shim_event::job_goes_on);
    loop_.after(suspension_check, [this] { follow_suspension(); });
}

/// The run is over for this host, and a stopped agent would stay there.
void rank_shim::wake_agent() const {
    if (parents_.daemon_name == agent_process && !parent_is_gone() && is_stopped(parents_.daemon))
        ::kill(parents_.daemon, SIGCONT);
}

void rank_shim::say(std::string const& text) {
    auto line = fmt::format("muster: {}\n", text);
    if (sender_ && line_.is_open()) return sender_->note(std::move(line));
    // The engine may have gone with the launcher, or may not read: neither must keep us from ending the rank.
    pollfd here{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&here, 1, 0) != 1) return;
    [[maybe_unused]] auto const n = ::write(STDERR_FILENO, line.data(), line.size());
}

/// Output goes to the launcher by our own connection. Engines mix the lines of ranks, in pieces of different sizes, and lose what
/// they cannot write.
void rank_shim::open_streams() {
    line_format const as_it_is{.tag = "", .raw = true};  // the launcher makes lines of it
    auto files = make_output_files(job_.output_dir, job_.who, spare_of(job_.who));
    sender_.emplace([this](std::string_view frame) { line_.send(frame); }, job_.output_window);
    output_.emplace(loop_, *sender_);
    err_.emplace(STDERR_FILENO, as_it_is, std::move(files.err));
    out_.emplace(STDOUT_FILENO, as_it_is, std::move(files.out));
}

void rank_shim::start(wire::go const& go) {
    auto own = program_variables(job_, go, binding_, variables_);
    auto const program = find_program(job_.command.front(), own, job_.working_dir);
    open_streams();
    master_port_ = static_cast<int>(parse_integer(own.get_or("MASTER_PORT", "")).value_or(0));
    memory_ = count_memory_kills();
    ports_.reset();
    if (job_.in_place) {
        events_ = member_socket::make();
        own.set(elastic::events_variable, elastic::events_value(events_.child_fd()));
        own.set(elastic::over_nodes_variable, "1");
    }
    if (job_.sample > duration(0)) waits_ = rank_waits::make();
    if (auto const page = waits_.path(); !page.empty()) own.set(wait_page_variable, page);
    // Hydra does not tell ranks on other nodes that standard input has ended.
    int const input = job_.who.rank == 0 ? STDIN_FILENO : -1;
    pid_ = start_process({.path = program,
                          .arguments = &job_.command,
                          .variables = &own,
                          .working_dir = job_.working_dir,
                          .stdin_fd = input,
                          .stdout_fd = out_->child_fd(),
                          .stderr_fd = err_->child_fd(),
                          .kept_fd = events_.child_fd(),
                          .cores = binding_.cores,
                          .own_group = false,
                          .limits = job_.limits,
                          .file_mask = job_.file_mask});
    take(shim_event::is_started);
    events_.close_child_end();
    events_.watch(loop_, [this](std::string_view packet) { tell(wire::member_packet{std::string(packet)}); });
    for (auto* stream : {&out_, &err_}) {
        (*stream)->close_child_end();
        output_->add(**stream, [this, &one = **stream] { note_output(one); });
    }
}

/// Called before each read. Of an abort the launcher must know at once, since the scheduler may kill this process next.
void rank_shim::note_output(rank_stream& stream) {
    bool const is_first = std::exchange(last_written_, &stream) == nullptr;
    last_output_ = event_loop::clock::now();
    // A rank that prints the size of its world has initialised MPI by now, and one in a container may be over before the next look.
    bool const again = mpi_ == mpi_sight::loaded && last_output_ - looked_at_ > mpi_look_again_after;
    if (is_first || again) loop_.after(duration(0), [this] { detect_mpi(); });
    if (&stream == &*err_ && !abort_told_) loop_.after(duration(0), [this] { report_abort(); });
}

std::vector<sampled_rank> rank_shim::rank_to_sample() const {
    if (pid_ <= 0 || wait_status_ || !out_ || !err_) return {};
    sampled_rank one{.rank = job_.who.rank, .pid = pid_};
    if (binding_.device) one.gpu = gpu_number(*binding_.device);
    if (last_written_ != nullptr) one.silent_s = duration(event_loop::clock::now() - last_output_).count();
    waits_.read(one);
    one.metric = out_->last_metric_text().empty() ? err_->last_metric_text() : out_->last_metric_text();
    return {one};
}

void rank_shim::report_abort() {
    if (abort_told_ || !err_) return;
    auto const notice = find_abort_notice(err_->last_lines());
    if (!notice) return;
    abort_told_ = true;
    tell(wire::aborting{notice->rank, notice->code});
}

}  // namespace muster
