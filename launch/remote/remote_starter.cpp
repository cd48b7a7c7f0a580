#include "launch/remote/remote_starter.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/version.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/remote/flux_remote.hpp"
#include "launch/remote/host_agent.hpp"
#include "launch/remote/unreached_host.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/network.hpp"
#include "launch/system/open_files.hpp"
#include "launch/system/signal_table.hpp"
#include "launch/system/signals.hpp"
#include "launch/wire/run_key.hpp"
#include "pmix/library/random_bits.hpp"
#include "pmix/server/server_job.hpp"

namespace muster {

namespace {

constexpr std::size_t calls_at_once = 32;  ///< remote shells whose agents have not come yet
constexpr std::size_t largest_part_bytes = 64u << 20;
constexpr duration patience_with_hosts{10};     ///< from the call of a host until muster reports it
constexpr duration between_tries{1};            ///< between two tries of a remote shell that fails
constexpr duration patience_with_step{10};      ///< with an srun after all its agents got the order to end
constexpr duration between_losses{0.2};         ///< the losses of this time go into one line
constexpr duration patience_with_late_ones{2};  ///< with agents on their way, after the start is given up

/// Returns the variables that shims need to start. The ranks' variables come from the launcher, over the shims' connections.
environment variables_of_shims(environment const& own) {
    environment kept;
    for (auto const name : {"MUSTER_LAUNCHER", "MUSTER_TOKEN", "MUSTER_LOG", "MUSTER_PORTS", "PATH", "LD_LIBRARY_PATH"})
        if (auto const value = own.get(name)) kept.set(name, *value);
    return kept;
}

}  // namespace

remote_starter::remote_starter(environment variables, remote_order order)
    : signals_(take_signals(taken_signals(process_kind::starter), "the starter")),
      variables_(std::move(variables)),
      order_(std::move(order)),
      listener_(loop_, order_.hosts.size(), order_.lost_after,
                [this](wire::hello const& hello, std::unique_ptr<frame_channel>& link) { on_arrival(hello, link); }),
      nspace_(pmix::make_job_name(short_host_name())),
      hosts_(order_.hosts.size()),
      in_world_(static_cast<std::size_t>(std::ranges::count_if(order_.hosts, [](host_ranks const& one) { return !one.spare; }))) {
    ignore_signals(process_kind::starter);
    loop_.watch_readable(signals_.get(), [this] { on_signal(); });
    for (std::size_t i = 0; i < hosts_.size(); ++i)
        if (auto const& ranks = order_.hosts[i].ranks; !ranks.empty() && ranks.front() == 0) input_host_ = i;
    shim_directions_request request;
    request.interface = order_.interface;
    request.pass_key = parse_key_way(order_.pass_key);
    request.engine = order_.by_scheduler ? "pbs_tmrsh" : order_.at_once || order_.in_steps ? "srun" : "remote";
    request.munge_socket = order_.munge_socket;
    request.variables = variables_;
    request.needed = {order_.shim.front(), order_.working_dir};
    for (auto const& one : order_.hosts)
        if (!one.here) request.other_node = without_user(one.name);
    directions_.emplace(listener_.key(), listener_.port(), request);
    auto const& token = directions_->variables().at(1).second;
    bool const for_command_lines = token.starts_with("file:") || token.starts_with(munge_mark);
    ticket_ = for_command_lines ? token : order_.by_scheduler ? seal_for_job(listener_.key(), variables_) : "stdin";
}

remote_starter::~remote_starter() = default;

int remote_starter::run() {
    more_open_files const files(hosts_.size());
    inherited_files_ = files.inherited();
    if (order_.at_once)
        call_all();
    else
        call_some();
    loop_.after(patience_with_hosts, [this] { note_absent(); });
    loop_.run();
    say_lost();
    wait_for_agents();
    return asked_to_end_ ? 128 + SIGTERM : exit_code_;
}

void remote_starter::call_some() {
    if (giving_up_) return;
    auto on_the_way =
        static_cast<std::size_t>(std::ranges::count_if(hosts_, [](host const& one) { return one.now == host::state::called; }));
    for (std::size_t i = 0; i < hosts_.size() && on_the_way < calls_at_once; ++i)
        if (hosts_[i].now == host::state::waiting) {
            call(i);
            ++on_the_way;
        }
}

/// Agents, including those that a remote shell has become by exec, have folders to remove. Whoever ends this run kills what is
/// left below it, and Slurm ends a step whose srun is gone.
void remote_starter::wait_for_agents() {
    for (auto& one : hosts_) {
        if (!one.link) continue;
        if (asked_to_end_ && one.now == host::state::there) {  // otherwise its own end would count as a failure of a step
            one.link->send(wire::encode(wire::bye{0}));
            one.link->flush(duration(0.1));
        }
        one.link->close();
    }
    bool const by_flux = is_fluxrsh(order_.shell);  // a killed flux exec leaves a message of its broker behind
    duration const patience = !order_.in_steps ? duration(0.5) : asked_to_end_ || giving_up_ ? duration(2) : patience_with_step;
    auto const in_step = [&](host const& one) {
        return order_.in_steps && (one.now == host::state::over || one.now == host::state::there);
    };
    auto const end = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(patience);
    for (std::size_t i = 0; i < hosts_.size(); ++i)
        if (hosts_[i].shell >= 0 &&
            (order_.hosts[i].here || by_flux || in_step(hosts_[i]) || name_of_process(hosts_[i].shell) == agent_process))
            reap_within(hosts_[i].shell, end - event_loop::clock::now());
    if (shell_of_all_ >= 0) reap_within(shell_of_all_, asked_to_end_ || giving_up_ ? duration(1) : patience_with_step);
}

void remote_starter::note_absent() {
    if (all_there_ || giving_up_) return;
    auto const now = event_loop::clock::now();
    std::vector<std::string> absent;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
        auto& one = hosts_[i];
        if (one.now != host::state::called || one.noted || duration(now - one.called_at) < patience_with_hosts) continue;
        one.noted = true;
        absent.push_back(order_.hosts[i].name);
    }
    if (!absent.empty())
        say(fmt::format("note: called by {} {} ago or more, and no agent has come yet from {}", remote_shell_name(order_.shell),
                        format_duration(patience_with_hosts), list_some(absent, "hosts")));
    loop_.after(patience_with_hosts / 4, [this] { note_absent(); });
}

std::vector<std::string> remote_starter::agent_words(std::string const& number) const {
    return {order_.shim.front(), "agent", number, order_.agents(), directions_->variables().at(0).second, ticket_};
}

/// The words after the host are one line for a shell there, of whatever kind.
void remote_starter::call(std::size_t which) {
    auto& one = hosts_[which];
    auto const& place = order_.hosts[which];
    auto agent = agent_words(std::to_string(which));
    std::vector<std::string> argv;
    if (place.here) {
        if (ticket_.starts_with("job:")) agent.back() = "stdin";
        argv = agent;
    } else if (order_.in_steps) {
        argv = order_.shell;
        argv.push_back("--nodelist=" + place.name);
        argv.insert(argv.end(), agent.begin(), agent.end());
    } else {
        argv = order_.shell;
        argv.push_back(place.name);
        // The user's variables may be the only ones that say where muster's libraries lie.
        if (auto const libraries = variables_.get("LD_LIBRARY_PATH"); libraries && !libraries->empty())
            agent.insert(agent.begin(), {"env", "LD_LIBRARY_PATH=" + std::string(*libraries)});
        argv.push_back("exec " + shell_join(agent));
    }
    // The agent itself notices when this process is gone. An srun in its group would print every signal that the launcher sends
    // there.
    one.shell = start_shell(argv, agent.back() == "stdin", place.here || order_.in_steps, place.here ? 0 : SIGKILL);
    one.now = host::state::called;
    one.called_at = event_loop::clock::now();
}

/// Starts one srun, which passes its standard input and its variables to the agents of all nodes.
void remote_starter::call_all() {
    auto argv = order_.shell;
    auto const agent = agent_words("slurm");
    argv.insert(argv.end(), agent.begin(), agent.end());
    shell_of_all_ = start_shell(argv, ticket_ == "stdin", false, SIGKILL);
    for (auto& one : hosts_) {
        one.now = host::state::called;
        one.called_at = event_loop::clock::now();
    }
}

pid_t remote_starter::start_shell(std::vector<std::string> const& argv, bool gets_key, bool own_session, int death_signal) {
    auto [read_end, write_end] = make_pipe();
    auto const key = to_text(listener_.key()) + "\n";
    if (gets_key && ::write(write_end.get(), key.data(), key.size()) != static_cast<ssize_t>(key.size()))
        throw_system("write", "to a pipe of the remote shell");
    environment own = variables_;
    for (auto const name : {"MUSTER_LAUNCHER", "MUSTER_TOKEN"}) own.unset(name);
    bool const by_srun = order_.at_once || order_.in_steps;  // srun passes them on to its step
    return start_process({.path = find_program(argv.front(), variables_, ""),
                          .arguments = &argv,
                          .variables = &own,
                          .working_dir = "",
                          .stdin_fd = gets_key ? read_end.get() : -1,
                          .stdout_fd = STDERR_FILENO,
                          .stderr_fd = STDERR_FILENO,
                          .own_group = false,
                          .own_session = own_session,
                          .open_files = inherited_files_,
                          .death_signal = death_signal,
                          .ignored = by_srun ? std::vector<int>() : ignored_signals(process_kind::remote_shell)});
}

/// Finds the place of an agent that knows only Slurm's name of its node, by that name.
std::size_t remote_starter::place_of(wire::hello const& hello) const {
    if (!order_.at_once || hello.rank >= 0) return static_cast<std::size_t>(hello.rank);
    auto const found = std::ranges::find_if(order_.hosts, [&](auto const& one) { return one.name == hello.step; });
    return static_cast<std::size_t>(found - order_.hosts.begin());
}

void remote_starter::on_arrival(wire::hello const& hello, std::unique_ptr<frame_channel>& link) {
    auto const which = place_of(hello);
    if (which >= hosts_.size() || hosts_[which].now != host::state::called) return;
    if (giving_up_) {  // it gets the order to end, without a message
        hosts_[which].now = host::state::over;
        return stop_once_quiet();
    }
    auto& one = hosts_[which];
    if (hello.version != version()) {
        auto const what = fmt::format("has muster {}, and this is muster {}", hello.version, version());
        if (order_.probe) return leave_out(which, what);
        return give_up(which, fmt::format("{} {}; install the same version on every node", hello.host, what),
                       exit_code(errc::unavailable));
    }
    one.now = host::state::there;
    one.link = std::move(link);
    one.link->set_callbacks({[this, which](std::string_view frame) { on_frame(which, frame); },
                             [this, which](std::string const& reason) { on_lost(which, reason); }},
                            largest_part_bytes);
    one.name = hello.host;
    auto const variables = order_.probe ? environment() : variables_of_shims(variables_);
    one.link->send(wire::encode(wire::meet_launcher{static_cast<int>(order_.first_agent + which), variables, order_.lost_after}));
    if (order_.probe)
        start_shims(which);
    else if ((all_there_ = std::ranges::all_of(hosts_, [](host const& each) { return each.now == host::state::there; })))
        for (std::size_t i = 0; i < hosts_.size(); ++i) start_shims(i);
    loop_.after(duration(0),
                [this] { call_some(); });  // outside of the listener, which would take the errors for those of the caller
}

/// Leaves a probe out: the other nodes are inspected nevertheless.
void remote_starter::leave_out(std::size_t which, std::string const& why) {
    fmt::print(stderr, "{}\n", to_line({which, why}));
    hosts_[which].now = host::state::lost;
    exit_code_ = exit_code(errc::unavailable);
    loop_.after(duration(0), [this] {
        call_some();
        end_if_over();
    });
}

/// Runs when all agents are there: if one host cannot be reached no rank is placed, and only that host is to blame.
void remote_starter::start_shims(std::size_t which) {
    if (!start_order_) start_order_ = std::make_shared<std::string const>(wire::encode(order_for_agents()));
    hosts_[which].link->send(start_order_);
    if (which == input_host_) watch_input();
}

/// Each agent finds its own ranks in it by its number.
wire::start_shims remote_starter::order_for_agents() const {
    wire::start_shims order;
    order.shim = order_.shim;
    order.variables = variables_of_shims(variables_);
    order.world_size = count_ranks(order_.hosts);
    std::vector<std::string> names;
    std::vector<std::vector<int>> ranks(order_.first_agent);
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
        names.push_back(hosts_[i].name);
        ranks.push_back(order_.hosts[i].ranks);
    }
    if (!order_.probe) order.hosts = compress_hosts(names);  // a probe may not know all, and no MPI asks
    order.ranks = pack_ranks(ranks);
    for (auto const& one : order_.hosts)
        if (one.spare) order.spares += static_cast<int>(one.ranks.size());
    order.nspace = nspace_;
    order.network_interface = order_.interface;
    order.serve_mpi = !order_.probe;
    order.lost_after = order_.lost_after;
    return order;
}

void remote_starter::on_frame(std::size_t which, std::string_view frame) {
    std::visit([this, which](auto const& message) { on_message(which, message); }, wire::decode(frame));
}

void remote_starter::on_message(std::size_t which, wire::shims_ended const&) {
    hosts_[which].now = host::state::over;
    hosts_[which].link->send(wire::encode(wire::bye{0}));
    end_if_over();
}

/// An agent could not start its shims.
void remote_starter::on_message(std::size_t which, wire::failed const& failed) {
    if (!order_.probe) return give_up(fmt::format("on {}: {}", hosts_[which].name, failed.what), failed.exit_code);
    hosts_[which].link->send(wire::encode(wire::bye{failed.exit_code}));
    leave_out(which, "could not start a probe: " + failed.what);
}

/// When all agents were there, the launcher also learns of it from the shims, decides what it means and reports it.
void remote_starter::on_lost(std::size_t which, std::string const& reason) {
    if (hosts_[which].now != host::state::there) return;
    if (giving_up_) return void(hosts_[which].now = host::state::lost);
    if (reason != frame_channel::closed_by_peer && !all_there_) {
        if (lost_.empty()) loop_.after(between_losses, [this] { say_lost(); });
        if (lost_.empty()) lost_why_ = reason;
        lost_.push_back(hosts_[which].name);
    }
    hosts_[which].now = host::state::lost;
    exit_code_ = exit_code(errc::peer_failed);
    if (!order_.probe && !all_there_)
        return give_up(which,
                       fmt::format("the agent on {} ended before those of all hosts were there; run muster doctor --allocation",
                                   hosts_[which].name),
                       exit_code_);
    end_if_over();
}

/// Reports hosts together, since a failing switch loses many at one moment.
void remote_starter::say_lost() {
    if (lost_.empty()) return;
    say(fmt::format("error: the {} on {} {} lost: {}",
                    lost_.size() == 1 ? "connection to the agent" : "connections to the agents", list_some(lost_, "hosts"),
                    lost_.size() == 1 ? "is" : "are", lost_why_));
    lost_.clear();
}

void remote_starter::on_signal() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
        if (info.ssi_signo == SIGCHLD) {
            on_child();
        } else {
            asked_to_end_ = true;  // asked by the launcher, whose ranks are gone
            loop_.stop();
        }
}

void remote_starter::on_child() {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == shell_of_all_) on_shell_of_all_ended(status);
        for (std::size_t i = 0; i < hosts_.size(); ++i) {
            if (hosts_[i].shell != pid) continue;
            hosts_[i].shell = -1;
            if (hosts_[i].now != host::state::called) continue;
            if (giving_up_) {
                hosts_[i].now = host::state::lost;
                stop_once_quiet();
                continue;
            }
            if (try_again(i, status)) continue;
            auto const& place = order_.hosts[i];
            auto const shell = place.here            ? std::string("muster agent")
                               : order_.by_scheduler ? "pbs_tmrsh"
                                                     : remote_shell_name(order_.shell);
            auto const end = describe_call_end(status, order_.shim.front());
            if (order_.probe) {
                leave_out(i, fmt::format("could not be reached: {} {}", shell, end));
                continue;
            }
            hosts_[i].now = host::state::lost;
            give_up(i,
                    fmt::format("no agent of muster came from {}: {} {}; try: {} {}{} true", place.name, shell, end,
                                shell_join(order_.shell), order_.in_steps ? "--nodelist=" : "", place.name),
                    exit_code(errc::unavailable));
        }
    }
}

/// Retries a name that does not resolve yet or an sshd that is not up: hosts that were started with this one may come some
/// seconds later. A shell that ran there and did not find the program will not find it.
bool remote_starter::try_again(std::size_t which, int wait_status) {
    auto& one = hosts_[which];
    int const code = shell_code(wait_status);
    auto const left = order_.try_for - duration(event_loop::clock::now() - start_);
    if (order_.hosts[which].here || left < between_tries || code == 0 || code == 126 || code == 127) return false;
    if (!std::exchange(one.failed, true))
        say(fmt::format("note: {} cannot be reached yet: {} {}; trying again for {} (--start-timeout)", order_.hosts[which].name,
                        remote_shell_name(order_.shell), describe_end(wait_status),
                        format_duration(duration(std::ceil(left.count())))));
    one.now = host::state::pausing;
    loop_.after(between_tries, [this, which] {
        if (giving_up_) return;
        hosts_[which].now = host::state::waiting;
        call_some();
    });
    return true;
}

/// Handles the end of the one shell for all hosts: agents that have not come will not come. It has itself printed which one is to
/// blame.
void remote_starter::on_shell_of_all_ended(int status) {
    shell_of_all_ = -1;
    auto const end = describe_call_end(status, order_.shim.front());
    std::vector<std::string> absent;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
        if (hosts_[i].now != host::state::called) continue;
        absent.push_back(order_.hosts[i].name);
        if (order_.probe)
            leave_out(i, fmt::format("could not be reached: {} {}", remote_shell_name(order_.shell), end));
        else
            hosts_[i].now = host::state::lost;
    }
    if (!absent.empty() && !order_.probe && !giving_up_)
        give_up(fmt::format("no agent of muster came from {}: {} {}", list_some(absent, "hosts"), remote_shell_name(order_.shell),
                            end),
                exit_code(errc::unavailable));
    else if (giving_up_)
        stop_once_quiet();
}

/// Records the host that is to blame, so that another start may leave it out.
void remote_starter::give_up(std::size_t which, std::string const& why, int code) {
    if (!giving_up_ && !order_.blame_file.empty()) write_output_file(order_.blame_file, order_.hosts[which].name);
    give_up(why, code);
}

void remote_starter::give_up(std::string const& why, int code) {
    if (std::exchange(giving_up_, true)) return;
    say((order_.first_agent > 0 ? "note: " : "error: ") + why);  // the others go on without a late one
    exit_code_ = code;
    for (auto& one : hosts_)
        if (one.link) one.link->send(wire::encode(wire::bye{0}));
    loop_.after(patience_with_late_ones, [this] { loop_.stop(); });
    stop_once_quiet();
}

/// Waits for agents on their way: one that finds nobody here would report a network fault.
void remote_starter::stop_once_quiet() {
    if (std::ranges::any_of(hosts_, [](host const& one) { return one.now == host::state::called; })) return;
    loop_.after(duration(0.05), [this] { loop_.stop(); });  // lets the last message reach the last agent
}

void remote_starter::end_if_over() {
    auto const is_over = [](host const& one) { return one.now == host::state::over || one.now == host::state::lost; };
    if (!std::ranges::all_of(hosts_, is_over)) return;
    for (auto& one : hosts_)
        if (one.link) one.link->flush(duration(0.5));
    loop_.stop();
}

void remote_starter::say(std::string const& line) {
    fmt::print(stderr, "muster: {}\n", line);
}

/// Sends the parts of all hosts that take part, one after the other, to each of them.
void remote_starter::on_message(std::size_t, wire::exchange const& exchange) {
    auto& gathered = exchanges_[exchange.name];
    if (gathered.parts == 0 && !exchange.nodes.empty())
        gathered.nodes = parse_numbers(exchange.nodes, "the nodes of an exchange");
    gathered.data += exchange.data;
    if (++gathered.parts < (gathered.nodes.empty() ? in_world_ : gathered.nodes.size())) return;
    auto const nodes = std::move(gathered.nodes);
    auto const all =
        std::make_shared<std::string const>(wire::encode(wire::exchange{exchange.name, {}, std::move(gathered.data)}));
    exchanges_.erase(exchange.name);  // the next one of this name may come at once
    auto const send_to = [&](std::size_t which) {
        if (which < hosts_.size() && hosts_[which].link) hosts_[which].link->send(all);
    };
    for (int const node : nodes) send_to(static_cast<std::size_t>(node));
    if (nodes.empty())
        for (std::size_t i = 0; i < hosts_.size(); ++i) send_to(i);
}

void remote_starter::on_message(std::size_t which, wire::modex const& modex) {
    auto const to = static_cast<std::size_t>(modex.node);
    if (to < hosts_.size() && hosts_[to].now == host::state::there) {
        auto passed_on = modex;
        passed_on.node = static_cast<int>(which);
        hosts_[to].link->send(wire::encode(passed_on));
    } else if (modex.rank >= 0) {  // a question
        hosts_[which].link->send(wire::encode(wire::modex{modex.node, modex.number, -1, pmix::modex_not_found, {}}));
    }
}

/// A file cannot be watched, and need not be.
void remote_starter::watch_input() {
    struct stat found {};
    bool const waits = ::fstat(STDIN_FILENO, &found) == 0 && (S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode));
    if (waits)
        loop_.watch_readable(STDIN_FILENO, [this] { read_input(); });
    else
        loop_.after(duration(0), [this] { read_input(); });
}

/// Reads one block; only one is on its way at a time.
void remote_starter::read_input() {
    std::array<char, 64 << 10> block;
    auto const n = ::read(STDIN_FILENO, block.data(), block.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    loop_.unwatch(STDIN_FILENO);
    auto& link = hosts_[input_host_].link;
    input_ended_ = n <= 0;
    link->send(wire::encode(wire::input{n > 0 ? std::string(block.data(), static_cast<std::size_t>(n)) : std::string()}));
}

void remote_starter::on_message(std::size_t, wire::taken const&) {
    if (!input_ended_) watch_input();
}

}  // namespace muster
