#include "launch/preflight/node_probe.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>

#include "base/process/files.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/version.hpp"
#include "base/wall_clock.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/ranks/rank_variables.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/system/home_folder.hpp"
#include "launch/system/network.hpp"
#include "launch/system/signal_table.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/launcher_link.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

namespace {

constexpr std::size_t most_resolvers = 16;

/// Adds what one inspection found to the report.
using report_part = std::function<void(node_report&)>;

/// Runs inspections at the same time, each in a thread that may outlive this object.
class parallel_inspections {
  public:
    void start(std::string const& what, std::function<report_part()> inspect) {
        {
            std::lock_guard const lock(shared_->mutex);
            shared_->pending.insert(what);
        }
        auto const run = [shared = shared_, what, inspect = std::move(inspect)] {
            auto add = inspect();
            std::lock_guard const lock(shared->mutex);
            add(shared->report);
            shared->pending.erase(shared->pending.find(what));
            shared->changed.notify_all();
        };
        try {
            std::thread(run).detach();
        } catch (std::system_error const&) {
            run();  // no thread is available
        }
    }

    node_report finish(duration limit) {
        std::unique_lock lock(shared_->mutex);
        shared_->changed.wait_for(lock, limit, [&] { return shared_->pending.empty(); });
        auto report = shared_->report;
        std::set<std::string> const open(shared_->pending.begin(), shared_->pending.end());
        report.unfinished.assign(open.begin(), open.end());
        return report;
    }

  private:
    struct state {
        std::mutex mutex;
        std::condition_variable changed;
        node_report report;
        std::multiset<std::string> pending;
    };
    std::shared_ptr<state> shared_ = std::make_shared<state>();
};

/// Threads that start while this lives take no signals, which are for the main thread.
class without_signals {
  public:
    without_signals() {
        sigset_t all;
        sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~without_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    without_signals(without_signals const&) = delete;
    without_signals& operator=(without_signals const&) = delete;

  private:
    sigset_t before_{};
};

report_part inspect_machine(environment const& variables) {
    node_report r;
    try {
        auto const machine = discover_here(variables);
        r.cores = static_cast<int>(machine.cores.size());
        auto const allowed = machine.allowed();
        r.cpus = static_cast<int>(allowed.cpus.size());
        r.cpu_list = allowed.to_list();
        r.gpu_note = machine.gpu_note;
        r.gpus = read_gpu_states(machine.gpus);
    } catch (error const& e) {
        r.machine_fault = e.what();
    }
    return [r](node_report& to) {
        to.cores = r.cores;
        to.cpus = r.cpus;
        to.cpu_list = r.cpu_list;
        to.gpu_note = r.gpu_note;
        to.gpus = r.gpus;
        to.machine_fault = r.machine_fault;
    };
}

report_part inspect_folder(std::string const& path) {
    folder_state folder{path, 0, ""};
    struct statvfs info {};
    if (::statvfs(path.c_str(), &info) != 0 || ::access(path.c_str(), W_OK | X_OK) != 0)
        folder.fault = std::strerror(errno);
    else
        folder.free_bytes = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
    return [folder](node_report& to) { to.folders.push_back(folder); };
}

report_part inspect_program(node_question const& asked, environment const& variables) {
    std::string found, fault, folder_fault;
    if (!asked.working_dir.empty() && ::access(asked.working_dir.c_str(), X_OK) != 0) folder_fault = std::strerror(errno);
    try {
        if (!asked.program.empty()) found = find_program(asked.program, variables, asked.working_dir);
    } catch (error const& e) {
        fault = e.what();
    }
    return [=](node_report& to) {
        to.program = found;
        to.program_fault = fault;
        to.working_dir_fault = folder_fault;
    };
}

std::string why_unresolved(std::string const& name) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    int const rc = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
    if (found != nullptr) ::freeaddrinfo(found);
    return rc == 0 ? std::string() : rc == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(rc);
}

report_part resolve(std::vector<std::string> const& names) {
    std::vector<name_fault> faults;
    for (auto const& name : names)
        if (auto why = why_unresolved(name); !why.empty()) faults.push_back({name, std::move(why)});
    return [faults](node_report& to) { to.unresolved.insert(to.unresolved.end(), faults.begin(), faults.end()); };
}

report_part inspect_address(node_question const& asked, int towards_launcher) {
    std::string address, interface, fault;
    try {
        address = reachable_address(asked.address, asked.network_interface, towards_launcher);
        interface = interface_that_has(address);
    } catch (error const& e) {
        fault = e.what();
    }
    return [=](node_report& to) {
        to.address = address;
        to.interface = interface;
        to.address_fault = fault;
    };
}

}  // namespace

node_report inspect_node(node_question const& asked, environment const& own_variables, int towards_launcher) {
    without_signals const guard;
    auto const variables = rank_environment(asked.variables, own_variables, asked.own_step);
    parallel_inspections inspections;
    inspections.start("cores and GPUs", [own_variables] { return inspect_machine(own_variables); });
    std::set<std::string> folders{"/dev/shm", "/tmp"};
    if (auto const own = variables.get("TMPDIR"); own && !own->empty()) folders.insert(*own);
    for (auto const& path : folders) inspections.start(path, [path] { return inspect_folder(path); });
    inspections.start("the program", [asked, variables] { return inspect_program(asked, variables); });
    inspections.start("the network", [asked, towards_launcher] { return inspect_address(asked, towards_launcher); });
    std::vector<std::vector<std::string>> shares(std::min(most_resolvers, asked.names.size()));
    for (std::size_t i = 0; i < asked.names.size(); ++i) shares[i % shares.size()].push_back(asked.names[i]);
    for (auto const& share : shares) inspections.start("host names", [share] { return resolve(share); });
    auto report = inspections.finish(asked.limit);
    auto const by_path = [](folder_state const& a, folder_state const& b) { return a.path < b.path; };
    std::ranges::sort(report.folders, by_path);
    auto const by_name = [](name_fault const& a, name_fault const& b) { return a.name < b.name; };
    std::ranges::sort(report.unresolved, by_name);
    report.version = version();
    report.host = short_host_name();
    return report;
}

namespace {

constexpr std::size_t most_names = 256;

bool is_number(std::string_view name) {
    return name.find_first_not_of("0123456789.") == std::string_view::npos || name.find(':') != std::string_view::npos;
}

/// Returns the names of all nodes, or of the first and an even sample.
std::vector<std::string> names_to_resolve(allocation const& given, std::vector<int> const& nodes) {
    std::vector<std::string> names;
    std::size_t const step = nodes.size() / most_names + 1;
    for (std::size_t i = 0; i < nodes.size(); i += step) {
        auto const& node = given.nodes[static_cast<std::size_t>(nodes[i])];
        for (auto const& one : {std::string(without_user(node.name)), node.address})
            if (!one.empty() && !is_number(one) && std::ranges::find(names, one) == names.end()) names.push_back(one);
    }
    return names;
}

}  // namespace

node_question make_node_question(run_plan const& run, std::vector<int> const& nodes, int node) {
    auto const& options = run.options;
    node_question what;
    if (!options.command.empty()) {
        what.program = options.command.front();
        what.working_dir = absolute_path(options.working_dir.empty() ? "." : options.working_dir);
    }
    what.variables = variables_for_ranks(run.inherited, options.exports);
    leave_out(what.variables, options.unexported, options.exports);
    what.names = names_to_resolve(run.given, nodes);
    what.address = run.given.nodes[static_cast<std::size_t>(node)].address;
    what.network_interface = options.network_interface;
    return what;
}

namespace {

constexpr duration lifetime{120};
constexpr duration connect_limit{3};
constexpr std::size_t largest_question_bytes = 64u << 20;

/// Does one thing at a time: while this inspects or connects, the kernel accepts others' connections to its port.
class probe {
  public:
    probe(environment const& variables, int first) : variables_(variables), door_(listen_on_all()) {
        auto link = connect_to_launcher(variables);
        launcher_fd_ = link.socket.get();
        detect_lost_peer(launcher_fd_, probe_lost_after);
        launcher_ = std::make_unique<frame_channel>(loop_, std::move(link.socket),
                                                    frame_channel::callbacks{[this](std::string_view frame) { on_frame(frame); },
                                                                             [this](std::string const&) { loop_.stop(); }},
                                                    largest_question_bytes);
        launcher_->secure(std::move(link.session));
        ::fcntl(door_.socket.get(), F_SETFL, O_NONBLOCK);
        loop_.watch_readable(door_.socket.get(), [this] {
            while (unique_fd(::accept4(door_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC))) {
            }
        });
        loop_.after(lifetime, [this] { loop_.stop(); });
        auto hello = introduce_shim(variables, short_host_name());
        hello.rank += first;
        tell(hello);
    }

    void run() { loop_.run(); }

  private:
    void on_frame(std::string_view frame) {
        std::visit([this](auto const& message) { on_message(message); }, wire::decode(frame));
    }

    void on_message(wire::examine const& examine) {
        double const asked_at = clock_now();
        wire::report report{inspect_node(examine.what, variables_, launcher_fd_)};
        report.node.port = door_.port;
        report.node.asked_at = asked_at;
        report.node.answered_at = clock_now();
        tell(report);
    }

    void on_message(wire::reach const& reach) {
        wire::reached reached;
        try {
            connect_to(reach.address, reach.port, connect_limit);
        } catch (error const& e) {
            reached.fault = e.what();
        }
        tell(reached);
    }

    void on_message(wire::bye const&) { loop_.stop(); }

    template <typename Other>
    void on_message(Other const&) {}

    void tell(wire::message const& message) { launcher_->send(wire::encode(message)); }

    environment const& variables_;
    event_loop loop_;
    listener door_;  ///< others connect to it, to find out whether they can
    int launcher_fd_ = -1;
    std::unique_ptr<frame_channel> launcher_;
};

}  // namespace

int probe_command(std::vector<std::string> const& args, environment const& inherited) try {
    auto variables = inherited;
    provide_home(variables);
    auto const first = parse_integer(args.empty() ? "0" : args.front());
    if (!first || *first < 0 || *first > INT_MAX)
        throw error(errc::usage, "muster probe, which muster run starts, takes the number of a node");
    ignore_signals(process_kind::probe);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // sent when the engine's daemon ends
    probe(variables, static_cast<int>(*first)).run();
    std::_Exit(0);  // a thread that hangs must not keep the process
} catch (error const& e) {
    throw_error(e.code(), "on {}: {}", short_host_name(), e.what());
}

}  // namespace muster
