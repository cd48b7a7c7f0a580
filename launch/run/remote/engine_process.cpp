#include "launch/run/remote/engine_process.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <utility>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/process/process.hpp"

namespace muster {

namespace {

constexpr duration engine_grace{1.5};  ///< for an engine that was asked to end
constexpr std::chrono::seconds cancel_patience{10};

}  // namespace

void engine_process::start(engine_command const& command, std::size_t connections) {
    files_.emplace(connections);
    pid_ = start_engine(command, *files_, {input_.child_fd(), STDOUT_FILENO, STDERR_FILENO});
    input_.child_started();
}

bool engine_process::take(pid_t pid, int status) {
    if (pid == cancel_pid_) cancel_pid_ = -1;
    if (pid != pid_ || status_) return false;
    status_ = status;
    return true;
}

void engine_process::end(int signal_number, std::string const& step) {
    if (status_) return;
    was_ended_ = true;
    if (signal_number == SIGTERM) cancel(step);
    ::kill(-pid_, signal_number);
    ::kill(-pid_, SIGCONT);
    if (signal_number != SIGKILL) loop_.after(engine_grace, [this] { end(SIGKILL, {}); });
}

void engine_process::cancel(std::string const& step) {
    if (std::exchange(cancelled_, true) || engine_.cancel == nullptr || step.empty()) return;
    auto const argv = engine_.cancel(step);
    if (argv.empty()) return;
    try {
        auto const variables = environment::capture();
        cancel_pid_ = start_process({
            .path = find_program(argv.front(), variables, ""),
            .arguments = &argv,
            .variables = &variables,
        });
    } catch (error const& e) {
        say_(fmt::format("cannot cancel step {}: {}", step, e.what()));
    }
}

void engine_process::wait_for_cancel() {
    auto const end = event_loop::clock::now() + cancel_patience;
    while (cancel_pid_ > 0 && event_loop::clock::now() < end) {
        if (::waitpid(cancel_pid_, nullptr, WNOHANG) != 0) break;
        timespec const pause{0, 20'000'000};
        ::nanosleep(&pause, nullptr);
    }
    cancel_pid_ = -1;
}

}  // namespace muster
