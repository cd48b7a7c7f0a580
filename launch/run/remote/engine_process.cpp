#include "launch/run/remote/engine_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "launch/system/end_processes.hpp"

namespace muster {

namespace {

constexpr duration engine_grace{1.5};  ///< for an engine that was asked to end
constexpr duration cancel_patience{10};

/// Takes whole lines; removes what mpirun's srun and daemons say about themselves.
std::string without_noise(std::string_view lines) {
    std::string kept;
    for (auto const line : split(lines.substr(0, lines.size() - 1), '\n')) {
        bool const of_signal = line.find(": Forwarding signal ") != std::string_view::npos && line.ends_with(" to job");
        if (of_signal || line == "srun: cluster configuration lacks support for cpu binding") continue;
        kept.append(line) += '\n';
    }
    return kept;
}

}  // namespace

void engine_process::start(engine_command const& command, std::size_t connections, bool by_srun) {
    files_.emplace(connections);
    unique_fd said;
    if (by_srun) {
        std::tie(words_, said) = make_pipe();
        ::fcntl(words_.get(), F_SETFL, O_NONBLOCK);
        loop_.watch_readable(words_.get(), [this] { hear(); });
    }
    pid_ = start_engine(command, *files_, {input_.child_fd(), STDOUT_FILENO, said ? said.get() : STDERR_FILENO});
    input_.child_started();
}

/// Passes on a last line without an end, too.
void engine_process::hear() {
    std::array<char, 4096> block;
    while (words_) {
        auto const n = ::read(words_.get(), block.data(), block.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) {
            loop_.unwatch(words_.get());
            words_.reset();
            if (!unended_.empty()) pass_on_(std::exchange(unended_, {}) + "\n");
            return;
        }
        std::string_view const bytes(block.data(), static_cast<std::size_t>(n));
        heard_.take(bytes);
        unended_ += bytes;
        auto const end = unended_.rfind('\n');
        if (end == std::string::npos) continue;
        auto rest = unended_.substr(end + 1);
        unended_.resize(end + 1);
        if (auto lines = without_noise(std::exchange(unended_, std::move(rest))); !lines.empty()) pass_on_(std::move(lines));
    }
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
    if (cancel_pid_ > 0) reap_within(cancel_pid_, cancel_patience);
    cancel_pid_ = -1;
}

}  // namespace muster
