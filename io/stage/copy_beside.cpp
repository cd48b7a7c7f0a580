#include "io/stage/copy_beside.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "base/command/command_set.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process/process.hpp"
#include "base/process/start_thread.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "comm/communicator.hpp"
#include "pmix/client/client.hpp"

namespace muster::stage {

namespace {

constexpr int passed_on[]{SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constexpr std::chrono::milliseconds until_free{50};

/// Copies on a thread of its own, so that signals reach the command during a copy too.
class copier {
  public:
    explicit copier(beside_request const& request) : request_(request) {
        request_.copy.leave_changing = true;
        thread_ = start_thread("copying beside a command", [this] { run(); });
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

/// The launcher takes a rank for one that never met its world if it has MPI loaded, as this program has, and was not heard of. Whether
/// the command met it is the command's affair; it has ended, so there is one client of PMIx at a time.
void tell_the_launcher(identity const& who) {
    if (who.world_size == 1 || (who.from != identity::source::muster && who.from != identity::source::pmix)) return;
    try {
        pmix::client const hello(duration{10});
    } catch (error const& e) {
        spdlog::debug("the launcher is not told that this rank is here: {}", e.what());
    }
}

}  // namespace

void copy_alone(copy_request const& request, std::string const& host) {
    comm_options self;
    self.backend = "self";
    communicator alone = communicator::create(identity{}, self);
    copy_report const report = copy_tree(request, alone);
    if (report.bytes_written > 0)
        fmt::print(stderr, "muster-stage: {}: {} written to {}\n", host, format_bytes(report.bytes_written), request.target);
    for (std::string const& path : report.left_out)
        fmt::print(stderr, "muster-stage: {}: {} changed while it was copied: left for the next time\n", host,
                   without_controls(path));
}

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
    if (code == 0) tell_the_launcher(request.who);
    try {
        copy_at_end(request);
    } catch (error const& e) {
        print_error("muster-stage", fmt::format("{}: the results are not copied: {}", request.who.host, e.what()));
        return code != 0 ? code : exit_code(e.code());
    }
    return code;
}

}  // namespace muster::stage
