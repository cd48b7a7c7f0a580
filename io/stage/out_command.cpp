#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/command/command_set.hpp"
#include "base/environment.hpp"
#include "base/process/process.hpp"
#include "base/process/start_thread.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/units.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/communicator.hpp"
#include "comm/fail_together.hpp"
#include "io/copy/copy_tree.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/stage/commands.hpp"
#include "io/stage/on_nodes.hpp"
#include "pmix/identity.hpp"

namespace muster::stage {

struct beside_request {
    copy_request copy;
    std::vector<std::string> command;
    std::optional<duration> every;  ///< nothing: at signals and at the end alone
    identity who;
};

void copy_alone(copy_request const& request, std::string const& host);

namespace {

constexpr int passed_on[]{SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constexpr std::chrono::milliseconds until_free{50};

/// Copies on another thread, so that signals reach the command during a copy too.
class copier {
  public:
    explicit copier(beside_request const& request) : request_(request) {
        request_.copy.leave_changing = true;
        thread_ = start_thread("copying next to a command", [this] { run(); });
    }
    ~copier() { end(); }
    copier(copier const&) = delete;
    copier& operator=(copier const&) = delete;

    void copy_now() {
        std::lock_guard const hold(lock_);
        wanted_ = true;
        changed_.notify_one();
    }

    /// A copy that runs is waited for.
    void end() {
        {
            std::lock_guard const hold(lock_);
            ended_ = true;
            changed_.notify_one();
        }
        if (thread_.joinable()) thread_.join();
    }

  private:
    using clock = std::chrono::steady_clock;

    void run() {
        std::unique_lock hold(lock_);
        auto const is_woken = [this] { return wanted_ || ended_; };
        for (;;) {
            if (request_.every)
                changed_.wait_until(
                    hold,
                    clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(*request_.every)),
                    is_woken);
            else
                changed_.wait(hold, is_woken);
            if (ended_) return;
            wanted_ = false;
            hold.unlock();
            try {
                copy_alone(request_.copy, request_.who.host);
            } catch (std::exception const& e) {
                fmt::print(stderr, "muster-stage: {}: not copied this time: {}\n", request_.who.host, without_controls(e.what()));
            }
            hold.lock();
        }
    }

    beside_request request_;
    std::mutex lock_;
    std::condition_variable changed_;
    bool wanted_ = false;
    bool ended_ = false;
    std::thread thread_;
};

/// Waits until the command has ended; passes signals on to it and to the copier, if there is one.
int exit_code_of(pid_t command, sigset_t const& awaited, std::optional<copier>& meanwhile) {
    for (;;) {
        int status = 0;
        pid_t const ended = ::waitpid(command, &status, WNOHANG);
        if (ended == command) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (ended < 0 && errno != EINTR) throw_system("waitpid", fmt::format("process {}", command));
        int const number = ::sigwaitinfo(&awaited, nullptr);
        if (number < 0 || number == SIGCHLD) continue;
        bool const is_notice = number == SIGUSR1 || number == SIGUSR2;
        // A command that does not know the signal would be ended by it, long before its time is up.
        if (!is_notice || catches_signal(command, number)) ::kill(command, number);
        if (meanwhile && is_notice) meanwhile->copy_now();
    }
}

/// Other ranks of the node copy too when their commands have ended: one after the other.
void copy_at_end(beside_request const& request) {
    copy_request last = request.copy;
    last.leave_changing = request.who.local_size > 1;  // by a command that runs still, whose rank copies later
    for (;;) {
        try {
            return copy_alone(last, request.who.host);
        } catch (target_in_use const&) {
            std::this_thread::sleep_for(until_free);
        }
    }
}

pid_t start(beside_request const& request, environment const& variables) {
    process_request command{
        .path = find_program(request.command.front(), variables, ""), .arguments = &request.command, .variables = &variables};
    command.stdin_fd = STDIN_FILENO;
    command.stdout_fd = STDOUT_FILENO;
    command.stderr_fd = STDERR_FILENO;
    return start_process(command);
}

}  // namespace

/// Copies once, by this node alone, and tells on standard error what was written and what was left. Throws as copy_tree().
void copy_alone(copy_request const& request, std::string const& host) {
    copy_report const report = copy_tree(request, *alone());
    if (report.bytes_written > 0)
        fmt::print(stderr, "muster-stage: {}: {} written to {}\n", host, format_bytes(report.bytes_written), request.target);
    for (std::string const& path : report.left_out)
        fmt::print(stderr, "muster-stage: {}: {} changed while it was copied: left for the next time\n", host,
                   without_controls(path));
}

/// Runs the command on this rank, with its standard input and output, and passes SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 on
/// to it; SIGUSR1 and SIGUSR2, which say that time is running out, only if it handles them, since they would end it. The first rank of a node copies meanwhile: every so often, and at SIGUSR1 and SIGUSR2. When its command has ended, however
/// that was, each rank copies once more, one after the other, so that the last one of the node brings everything; no rank waits for
/// another's command. No communicator is made: the command is the rank. Returns the command's exit code (128 + n: ended by signal
/// n; 126, 127: it cannot be executed, it is not there); that of the last copy's error only where the command's is 0. Call it from
/// the main thread, before there are others.
int copy_beside(beside_request const& request, environment const& variables) {
    sigset_t awaited;
    ::sigemptyset(&awaited);
    for (int const number : passed_on) ::sigaddset(&awaited, number);
    ::sigaddset(&awaited, SIGCHLD);
    // Before there are threads, so that all have them blocked; they stay so to the end, since the last copy is what this is for.
    ::pthread_sigmask(SIG_BLOCK, &awaited, nullptr);
    // The launcher gives notices to programs that have a handler for them only; these are waited for, and the handler never runs.
    for (int const number : {SIGUSR1, SIGUSR2}) ::signal(number, [](int) {});
    int code = 0;
    try {
        pid_t const command = start(request, variables);
        std::optional<copier> meanwhile;
        if (request.who.local_rank == 0) meanwhile.emplace(request);
        code = exit_code_of(command, awaited, meanwhile);
    } catch (program_error const& e) {
        print_error("muster-stage", e.what());
        return e.exit_status();
    }
    try {
        copy_at_end(request);
    } catch (error const& e) {
        print_error("muster-stage", fmt::format("{}: the results are not copied: {}", request.who.host, e.what()));
        return code != 0 ? code : exit_code(e.code());
    }
    return code;
}

namespace {

constexpr option_row out_options[]{
    {"every", 0, "TIME", "copy again and again, until SIGTERM or COMMAND's end; SIGUSR1, SIGUSR2: copy now", ""},
    {"merge", 0, "", "all nodes into DST itself; default: each into DST/HOST", ""},
    {"check", 0, "fast|full", "files that are there: trust size and time, or read them", "fast"},
    {"fsync", 0, "", "end when everything is on the disks", ""},
    {"dry-run", 0, "", "say what would be copied, and whether there is space; write nothing", ""},
    {"json", 0, "", "report as JSON", ""},
};

/// Two nodes may not bring different files to one name.
void refuse_conflicts(copy_request const& request, communicator& nodes) {
    std::string mine;
    auto const list = [&] {
        for (listed_file const& file : list_files(request.sources, 8).files)
            if (!file.is_folder()) mine += file.path + '\0';
    };
    run_on_all(nodes, "list the sources", list, member_is::node);
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(nodes.size()));
    auto own = static_cast<std::int64_t>(mine.size());
    nodes.allgather("sizes of the lists", view_of(std::span(&own, 1)), view_of(std::span(sizes))).wait();
    std::vector<std::size_t> counts(sizes.begin(), sizes.end());
    std::size_t total = 0;
    for (std::size_t const count : counts) total += count;
    std::string all(total, '\0');
    nodes
        .allgather("lists", {mine.data(), mine.size(), dtype::u8, memory_kind::host},
                   {all.data(), total, dtype::u8, memory_kind::host}, counts)
        .wait();
    std::map<std::string_view, int> owner;
    std::string_view rest = all;
    for (int rank = 0; rank < nodes.size(); ++rank) {
        std::string_view its = rest.substr(0, counts[static_cast<std::size_t>(rank)]);
        rest.remove_prefix(its.size());
        for (; !its.empty(); its.remove_prefix(its.find('\0') + 1)) {
            auto const [at, added] = owner.emplace(its.substr(0, its.find('\0')), rank);
            if (!added)
                throw comm_error(errc::usage,
                                 fmt::format("{} and {} both have {}; leave out --merge, so that each node gets a folder of "
                                             "its own",
                                             nodes.host_of(at->second), nodes.host_of(rank), at->first));
        }
    }
}

/// The signals that --every waits for; blocked before there are threads, so that all have them blocked.
sigset_t awaited_signals() {
    sigset_t set;
    ::sigemptyset(&set);
    for (int const number : {SIGTERM, SIGUSR1, SIGUSR2}) ::sigaddset(&set, number);
    return set;
}

/// Copies until SIGTERM comes; each node by itself, so that none waits for another. The last copy must succeed.
int copy_repeatedly(copy_request request, duration every, std::string const& host) {
    sigset_t const awaited = awaited_signals();
    for (bool last = false;;) {
        request.leave_changing = !last;
        auto const begin = std::chrono::steady_clock::now();
        try {
            copy_alone(request, host);
        } catch (error const& e) {
            if (last) throw;
            fmt::print(stderr, "muster-stage: {}: not copied this time: {}\n", host, e.what());
        }
        if (last) return 0;
        double const left =
            std::max(0.0, every.count() - std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        timespec const wait{static_cast<time_t>(left), static_cast<long>((left - std::floor(left)) * 1e9)};
        last = ::sigtimedwait(&awaited, nullptr, &wait) == SIGTERM;
    }
}

/// Returns the program that runs next to it, if one is given.
std::vector<std::string> command_of(given_options const& given, identity const& who) {
    if (given.program().empty()) return {};
    for (char const* const option : {"dry-run", "json"})
        if (given.has(option))
            throw_error(errc::usage, "{}: --{} does not go with a command; leave it out", given.command(), option);
    if (given.has("merge") && who.node_count > 1)
        throw_error(errc::usage,
                    "{}: --merge does not go with a command on {} nodes, which may write files of one name; leave out --merge",
                    given.command(), who.node_count);
    return given.program();
}

}  // namespace

constexpr command_row out_row{
    .name = "out",
    .summary = "bring results from every node back to a shared folder",
    .synopsis = "SRC... DST [options] [-- COMMAND...]",
    .examples =
        "  muster run -- muster stage out /tmp/$USER/ckpt /project/run7                                      now\n"
        "  muster run -- muster stage out --every 10min /tmp/$USER/ckpt /project/run7 -- python train.py     beside it\n"
        "  muster run -- muster stage out --every 10min /tmp/$USER/ckpt /project/run7 &                      until SIGTERM\n",
    .options = out_options,
    .description =
        "Every node copies its files to DST/HOST; a file gets its name there when it is whole. Nothing is removed from DST.\n"
        "With --every, a file that changes while it is read is left for the next time; at SIGTERM all are copied once more.\n"
        "With COMMAND it runs that, passes signals on to it, copies at SIGUSR1, SIGUSR2 and its end, and exits with its code.",
    .most_words = 1000,
    .takes_program = true,
};

int out_command(given_options const& given, identity const& who, environment const& variables) {
    auto const command = command_of(given, who);
    copy_request request = copy_request_of(given, variables);
    request.own_sources = true;
    std::optional<duration> every;
    if (given.has("every")) every = read_option([&] { return parse_duration(given.text("every"), "--every"); });
    std::string const shared = request.target;
    if (given.has("merge"))
        request.state_name = fmt::format("{}.{}", state_folder_name, who.host);
    else
        request.target += "/" + who.host;
    if (!command.empty()) return copy_beside({request, command, every, who}, variables);
    if (every) {
        sigset_t const awaited = awaited_signals();
        ::pthread_sigmask(SIG_BLOCK, &awaited, nullptr);
    }
    return on_nodes(who, variables, [&](communicator& nodes) {
        if (given.has("merge") && nodes.size() > 1) refuse_conflicts(request, nodes);
        if (every) return copy_repeatedly(request, *every, who.host);
        auto const begin = std::chrono::steady_clock::now();
        copy_report const report = copy_tree(request, nodes);
        double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        copy_request told = request;
        told.target = shared;
        print_copy(told, report, nodes, seconds, given.has("json"));
        return 0;
    });
}

}  // namespace muster::stage
