#include "bench/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"

namespace muster {

namespace {

// Between fork and exec: only calls that are safe there. Failures are told by exit code 127 after the number on `fault`.
[[noreturn]] void become(char const* path, char* const* argv, char* const* envp, int in, int out, int err, int fault,
                         pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    bool const orphan = ::getppid() != parent;
    if (!orphan && ::dup2(in, 0) >= 0 && ::dup2(out, 1) >= 0 && (err < 0 || ::dup2(err, 2) >= 0)) ::execve(path, argv, envp);
    int const code = errno;
    [[maybe_unused]] auto const written = ::write(fault, &code, sizeof code);
    ::_exit(127);
}

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> out;
    for (auto& w : words) out.push_back(w.data());
    out.push_back(nullptr);
    return out;
}

// Feeds `input` and collects the output without either blocking the other.
std::string talk(unique_fd to, std::string_view input, unique_fd from) {
    std::string out;
    if (input.empty())
        to = unique_fd();
    else
        ::fcntl(to.get(), F_SETFL, O_NONBLOCK);
    std::array<char, 65536> buffer;
    while (from || to) {
        std::array<pollfd, 2> wait{pollfd{from ? from.get() : -1, POLLIN, 0}, pollfd{to ? to.get() : -1, POLLOUT, 0}};
        if (::poll(wait.data(), wait.size(), -1) < 0) {
            if (errno == EINTR) continue;
            throw_system("poll", "a child's pipes");
        }
        if (wait[0].revents != 0) {
            auto const got = ::read(from.get(), buffer.data(), buffer.size());
            if (got > 0)
                out.append(buffer.data(), static_cast<std::size_t>(got));
            else if (got == 0 || errno != EINTR)
                from = unique_fd();
        }
        if (wait[1].revents != 0) {
            auto const put = ::write(to.get(), input.data(), input.size());
            if (put > 0)
                input.remove_prefix(static_cast<std::size_t>(put));
            else if (put < 0 && errno != EINTR && errno != EAGAIN)
                input = {};
            if (input.empty()) to = unique_fd();
        }
    }
    return out;
}

}  // namespace

std::string find_program(std::string const& name, environment const& variables) {
    if (name.find('/') != name.npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
    auto const path = variables.get_or("PATH", "/usr/local/bin:/usr/bin:/bin");
    for (auto const folder : split(path, ':')) {
        auto candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
        if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return {};
}

child_result run_child(std::vector<std::string> const& command, environment const& variables, child_options const& options) {
    expect(!command.empty(), "a child's command is not empty");
    auto const path = find_program(command[0], variables);
    if (path.empty())
        throw error(errc::not_found, fmt::format("cannot run '{}': no such program; install it or give its path", command[0]));
    auto words = command;
    auto lines = variables.lines();
    auto const argv = pointers(words), envp = pointers(lines);
    auto [in_read, in_write] = make_pipe();
    auto [out_read, out_write] = make_pipe();
    auto [fault_read, fault_write] = make_pipe();
    unique_fd error_file;
    if (!options.error_file.empty()) {
        error_file = unique_fd(::open(options.error_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
        if (!error_file) throw_system("open", options.error_file);
    }
    auto const begin = std::chrono::steady_clock::now();
    pid_t const parent = ::getpid();
    pid_t const pid = ::fork();
    if (pid < 0) throw_system("fork", command[0]);
    if (pid == 0)
        become(path.c_str(), argv.data(), envp.data(), in_read.get(), options.capture_output ? out_write.get() : 2,
               error_file ? error_file.get() : -1, fault_write.get(), parent);
    in_read = unique_fd();
    out_write = unique_fd();
    fault_write = unique_fd();

    child_result result;
    auto const ignore = ::signal(SIGPIPE, SIG_IGN);
    result.output = talk(std::move(in_write), options.input, std::move(out_read));
    ::signal(SIGPIPE, ignore);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) throw_system("waitpid", command[0]);
    result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    int code = 0;
    if (::read(fault_read.get(), &code, sizeof code) == sizeof code) throw_system("execve", path, code);
    result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return result;
}

}  // namespace muster
