#include "launch/remote/host_agent.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/cpuset.hpp"
#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "launch/remote/host_ranks.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/system/cgroup.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/network.hpp"
#include "launch/system/open_files.hpp"
#include "launch/system/session_dir.hpp"
#include "launch/system/signal_table.hpp"
#include "launch/system/signals.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/launcher_link.hpp"
#include "pmix/scrub.hpp"

namespace muster {

namespace {

constexpr std::size_t usual_open_files = 1024;
constexpr duration starter_lost_after{15};  ///< until the starter sends its own limit
constexpr std::size_t largest_order_bytes = 64u << 20;
constexpr std::size_t largest_frame_bytes = 64u << 20;
constexpr duration last_words{0.5};                 ///< for the last messages of shims when this process ends
constexpr int most_waits_for_strays = 500;          ///< each of 20 ms
constexpr std::string_view pmi1_exchange = "pmi1";  ///< the name of its barrier; fences have other names

}  // namespace

host_agent::host_agent(environment variables, agent_place place)
    : signals_(take_signals(taken_signals(process_kind::agent), "the agent")),
      variables_(std::move(variables)),
      place_(std::move(place)),
      started_(std::time(nullptr)) {
    make_room_for_open_files(usual_open_files);
    ::prctl(PR_SET_NAME, agent_process);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // processes that a killed shim leaves become ours
    ::prctl(PR_SET_PDEATHSIG, 0);        // a remote shell that became this process had to die with its starter
    ignore_signals(
        process_kind::agent);  // including SIGHUP: the remote shell may end before us, and our connection reports what matters
    loop_.watch_readable(signals_.get(), [this] { on_signal(); });
}

host_agent::~host_agent() {
    if (pmix_server_) pmix_server_->leave();
    if (!session_dir_.empty()) remove_session_dir(session_dir_);
}

int host_agent::run() {
    connect();
    loop_.run();
    if (launcher_) launcher_->flush(last_words);
    return exit_code_;
}

void host_agent::connect() {
    environment directions;
    directions.set("MUSTER_LAUNCHER", place_.addresses);
    directions.set("MUSTER_TOKEN", to_text(redeem_ticket(place_.ticket, variables_)));
    auto link = connect_to_launcher(directions);
    starter_fd_ = link.socket.get();
    detect_lost_peer(starter_fd_, starter_lost_after);
    starter_ =
        std::make_unique<frame_channel>(loop_, std::move(link.socket),
                                        frame_channel::callbacks{[this](std::string_view frame) { on_frame(frame); },
                                                                 [this](std::string const& reason) { on_starter_lost(reason); }},
                                        largest_order_bytes);
    starter_->secure(std::move(link.session));
    wire::hello hello;
    hello.version = version();
    hello.host = short_host_name();
    hello.rank = place_.number;
    if (place_.number < 0) hello.step = variables_.get_or("SLURMD_NODENAME", "");
    hello.world_size = place_.count;
    hello.pid = ::getpid();
    tell(hello);
}

/// Connects to the launcher, so that it knows this host at once.
void host_agent::on_message(wire::meet_launcher const& meeting) try {
    place_.number = meeting.number;
    if (meeting.variables.begin() == meeting.variables.end()) return;
    auto link = connect_to_launcher(meeting.variables);
    int const fd = link.socket.get();
    detect_lost_peer(fd, meeting.lost_after);
    launcher_fd_ = fd;
    launcher_ =
        std::make_unique<frame_channel>(loop_, std::move(link.socket),
                                        frame_channel::callbacks{[this](std::string_view frame) { on_launcher_frame(frame); },
                                                                 [this](std::string const&) { on_launcher_lost(); }},
                                        largest_frame_bytes);
    launcher_->secure(std::move(link.session));
    wire::hello hello;
    hello.version = version();
    hello.host = short_host_name();
    hello.world_size = place_.count;
    hello.pid = ::getpid();
    hello.agent = place_.number;
    launcher_->send(wire::encode(hello));
} catch (error const& e) {
    tell(wire::failed{e.what(), exit_code(e.code())});
}

/// Adapts the job, which is for all ranks here, to each; passes everything else on unchanged.
void host_agent::on_launcher_frame(std::string_view frame) {
    if (auto const one = wire::read_rank_frame(frame)) {
        for (auto& each : shims_)
            if (each.link && (one->rank == wire::rank_frame::all || one->rank == each.rank)) each.link->send(one->bytes);
        return;
    }
    auto message = wire::decode(frame);
    if (auto* const job = std::get_if<wire::job>(&message)) give_job(std::move(*job));
}

void host_agent::give_job(wire::job job) {
    try {
        job.own_address = reachable_address(job.address, job.network_interface, launcher_fd_);
    } catch (error const&) {
        job.own_address.clear();  // each shim reports what is wrong with the interface
    }
    for (std::size_t i = 0; i < shims_.size(); ++i) {
        job.who.rank = shims_[i].rank;
        job.who.local_rank = job.who.local_size - static_cast<int>(shims_.size() - i);  // they follow those of another agent
        if (shims_[i].link) shims_[i].link->send(wire::encode(job));
    }
}

/// Closes the shims' sockets; they notice, and then connect themselves.
void host_agent::on_launcher_lost() {
    for (auto& each : shims_)
        if (each.link) each.link->close();
}

void host_agent::on_frame(std::string_view frame) {
    std::visit([this](auto const& message) { on_message(message); }, wire::decode(frame));
}

void host_agent::on_starter_lost(std::string const& reason) {
    if (reason != frame_channel::closed_by_peer)
        fmt::print(stderr, "muster: {}: the connection to muster run is lost: {}\n", short_host_name(), reason);
    loop_.stop();
}

void host_agent::on_message(wire::start_shims const& order) try {
    detect_lost_peer(starter_fd_, order.lost_after);
    hosts_ = static_cast<std::size_t>(place_.count);
    auto ranks_of_hosts = unpack_ranks(order.ranks, hosts_, order.world_size);
    auto const ranks = ranks_of_hosts.at(static_cast<std::size_t>(place_.number));
    auto const waits = [&](std::vector<int> const& one) {
        return !one.empty() && one.front() >= order.world_size - order.spares;
    };
    std::erase_if(ranks_of_hosts, waits);
    hosts_ = ranks_of_hosts.size();
    if (order.serve_mpi && !waits(ranks)) serve_mpi(order, ranks_of_hosts);
    for (std::size_t i = 0; i < ranks.size(); ++i) start(order, ranks, static_cast<int>(i));
    any_started_ = true;
    sweep_session_dirs(session_places(variables_));  // those of agents that were killed
} catch (error const& e) {
    tell(wire::failed{e.what(), exit_code(e.code())});
}

/// Starts the servers through which MPI's ranks meet, as the launcher does on one node; the servers of all hosts exchange what
/// ranks publish.
void host_agent::serve_mpi(wire::start_shims const& order, std::vector<std::vector<int>> const& ranks_of_hosts) {
    session_dir_ = make_session_dir(session_lock_, session_places(variables_));
    pmix::job job;
    job.nspace = order.nspace;
    job.world_size = order.world_size - order.spares;
    job.session_dir = session_dir_;
    job.executable = order.shim.front();
    job.usable_cores = static_cast<int>(current_affinity().cpus.size());
    job.usable_cores = std::min(job.usable_cores, own_cpu_quota().value_or(job.usable_cores));
    auto const names = expand_hostlist(order.hosts, "the run's hosts");
    for (std::size_t i = 0; i < hosts_; ++i) job.nodes.push_back({names.at(i), ranks_of_hosts[i]});
    job.node = place_.number;
    job.host = names.at(static_cast<std::size_t>(place_.number));
    pmix_server_.emplace(job);
    pmi1_server_.emplace(job);
    for (int const fd : {pmix_server_->event_fd(), pmi1_server_->event_fd()})
        loop_.watch_readable(fd, [this] { poll_servers(); });
}

void host_agent::poll_servers() {
    for (auto const& event : pmix_server_->poll()) pass_on(event);
    for (auto const& event : pmi1_server_->poll()) pass_on(event);
    auto mail = pmix_server_->take_mail();
    for (auto& part : mail.parts)
        tell(wire::exchange{part.name, part.nodes.size() == hosts_ ? "" : cpuset{part.nodes}.to_list(), std::move(part.data)});
    for (auto& one : mail.modex) tell(wire::modex{one.node, one.number, one.rank, one.status, std::move(one.data)});
    if (auto part = pmi1_server_->take_part()) tell(wire::exchange{std::string(pmi1_exchange), "", std::move(*part)});
}

/// Passes it to the rank's shim, and through that to the launcher. After an abort an MPICH waits until it is killed. Its output
/// tells the shim more, but not every output is recognised, and it may go to a file.
void host_agent::pass_on(pmix::server_event const& event) const {
    using kind = pmix::server_event::kind;
    if (event.what == kind::log) return fmt::print(stderr, "{}", without_controls(event.text));
    auto const what = event.what == kind::connected   ? mpi_event::kind::connected
                      : event.what == kind::finalized ? mpi_event::kind::finalized
                                                      : mpi_event::kind::aborted;
    for (auto const& one : shims_)
        if (one.rank == event.rank && one.link) one.link->send(encode(mpi_event{what, event.code}));
}

/// Passes it to the launcher, or answers a question: has everything that the ended rank had done been read from the servers, or
/// does this process run?
void host_agent::on_shim_frame(std::size_t which, std::string_view frame) {
    auto const& one = shims_[which];
    if (auto const question = read_event(frame)) {
        if (pmix_server_) poll_servers();
        if (one.link) one.link->send(encode(*question));
    } else if (launcher_) {
        launcher_->send(wire::encode(wire::rank_frame{one.rank, frame}));
    }
}

void host_agent::on_shim_gone(std::size_t which) {
    if (launcher_) launcher_->send(wire::encode(wire::rank_frame{shims_[which].rank, {}, wire::rank_frame::kind::closed}));
}

void host_agent::on_message(wire::exchange const& exchange) {
    if (!pmix_server_) return;
    if (exchange.name == pmi1_exchange)
        pmi1_server_->finish_barrier(exchange.data);
    else
        pmix_server_->finish_exchange(exchange.name, exchange.data);
    poll_servers();
}

void host_agent::on_message(wire::modex const& modex) {
    if (!pmix_server_) return;
    pmix_server_->take(pmix::modex_message{modex.node, modex.number, modex.rank, modex.status, modex.data});
    poll_servers();
}

void host_agent::start(wire::start_shims const& order, std::vector<int> const& ranks, int local_rank) {
    int const rank = ranks[static_cast<std::size_t>(local_rank)];
    environment own = variables_;
    pmix::scrub_inherited(own);
    for (auto const& [name, value] : order.variables) own.set(name, value);
    if (pmix_server_) {
        pmix_server_->set_client_environment(rank, own);
        pmi1_server_->set_client_environment(rank, own);
    }
    auto const set = [&own](char const* name, int value) { own.set(name, std::to_string(value)); };
    own.set("MUSTER_NSPACE", order.nspace);
    set("MUSTER_RANK", rank);
    set("MUSTER_WORLD_SIZE", order.world_size);
    set("MUSTER_LOCAL_RANK", local_rank);
    set("MUSTER_LOCAL_SIZE", static_cast<int>(ranks.size()));
    set("MUSTER_NODE_RANK", place_.number);
    set("MUSTER_NODE_COUNT", place_.count);
    unique_fd in;
    if (rank == 0) {
        auto [read_end, write_end] = make_pipe();
        ::fcntl(write_end.get(), F_SETFL, O_NONBLOCK);
        in = std::move(read_end);
        input_ = std::move(write_end);
    }
    shims_.push_back({rank, -1, nullptr});
    unique_fd const end_of_shim = launcher_ ? open_link(shims_.size() - 1) : unique_fd();
    if (end_of_shim) own.set(agent_socket_variable, "1");
    pid_t const pid = start_process({.path = order.shim.front(),
                                     .arguments = &order.shim,
                                     .variables = &own,
                                     .working_dir = "",
                                     .stdin_fd = in ? in.get() : -1,
                                     .stdout_fd = end_of_shim ? end_of_shim.get() : STDERR_FILENO,
                                     .stderr_fd = STDERR_FILENO,
                                     .own_session = true});
    shims_.back().pid = pid;
}

/// Returns the shim's end of the socket between it and this process.
unique_fd host_agent::open_link(std::size_t which) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw_system("socketpair", "for a shim");
    unique_fd end_of_shim(ends[1]);
    shims_[which].link = std::make_unique<frame_channel>(
        loop_, unique_fd(ends[0]),
        frame_channel::callbacks{[this, which](std::string_view frame) { on_shim_frame(which, frame); },
                                 [this, which](std::string const&) { on_shim_gone(which); }},
        largest_frame_bytes);
    return end_of_shim;
}

void host_agent::on_message(wire::input const& input) {
    if (input.bytes.empty()) input_.reset();
    if (!input_) return;  // rank 0 no longer reads: the starter then leaves the rest unread
    pending_ = input.bytes;
    loop_.watch_writable(input_.get(), [this] { write_input(); });
}

void host_agent::write_input() {
    auto const n = ::write(input_.get(), pending_.data(), pending_.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n >= 0) pending_.erase(0, static_cast<std::size_t>(n));
    if (n >= 0 && !pending_.empty()) return;
    loop_.unwatch(input_.get());
    if (n < 0) return input_.reset();
    tell(wire::taken{});
}

void host_agent::on_signal() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
        if (info.ssi_signo == SIGTERM) on_request_to_end();
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
        for (auto& one : shims_)
            if (one.pid == pid) {
                one.pid = -1;
                if (WIFSIGNALED(status)) sweep_shared_memory(started_);
            }
    end_strays();
    tell_end();
}

/// The scheduler has also sent it to the ranks and their shims, which act on it.
void host_agent::on_request_to_end() {
    if (any_started_) return;
    exit_code_ = 128 + SIGTERM;
    loop_.stop();
}

/// Kills children that are no shims: processes that a killed shim has left, whose children then become ours in turn.
void host_agent::end_strays() const {
    for (pid_t const pid : descendants()) {
        auto const is_this = [pid](shim const& one) { return one.pid == pid; };
        if (parent_of(pid) == ::getpid() && std::ranges::none_of(shims_, is_this)) ::kill(pid, SIGKILL);
    }
}

void host_agent::tell_end() {
    auto const runs = [](shim const& one) { return one.pid >= 0; };
    if (!any_started_ || told_ || std::ranges::any_of(shims_, runs)) return;
    // Processes that a killed shim has left may have children that become ours only now.
    if (!descendants().empty() && ++waits_for_strays_ < most_waits_for_strays) {
        loop_.after(duration(0.02), [this] {
            end_strays();
            tell_end();
        });
        return;
    }
    told_ = true;
    tell(wire::shims_ended{});
}

void host_agent::on_message(wire::bye const& bye) {
    exit_code_ = bye.exit_code;
    loop_.stop();
}

void host_agent::tell(wire::message const& message) {
    starter_->send(wire::encode(message));
}

}  // namespace muster
