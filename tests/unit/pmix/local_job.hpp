// A small launcher: starts N real processes against our servers and collects how they ended.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "pmix/pmi1/pmi1_server.hpp"
#include "pmix/scrub.hpp"
#include "pmix/server/server.hpp"

namespace muster::pmix::test {

#ifdef MUSTER_TEST_BIN
inline std::string program(std::string const& name) {
    return std::string(MUSTER_TEST_BIN) + "/" + name;
}
inline std::string script(std::string const& name) {
    return std::string(MUSTER_TEST_PROGRAMS) + "/" + name;
}
#else
inline std::string program(std::string const& name) {
    return "/nonexistent/" + name;
}
inline std::string script(std::string const& name) {
    return "/nonexistent/" + name;
}
#endif

#define SKIP_WITHOUT(path) \
    if (access((path).c_str(), X_OK) != 0) GTEST_SKIP() << (path) << " was not built: no such MPI here"

inline job small_job(std::string const& dir, int size = 1) {
    return {.nspace = "small",
            .host = "localhost",
            .world_size = size,
            .session_dir = dir,
            .executable = "x",
            .cpusets = {},
            .shared_memory_dir = {}};
}

/// A private folder that goes away.
struct session_dir {
    session_dir() {
        std::string pattern = "/tmp/mutXXXXXX";
        if (mkdtemp(pattern.data()) == nullptr) throw_system("mkdtemp", pattern);
        path = pattern;
    }
    session_dir(session_dir const&) = delete;
    session_dir& operator=(session_dir const&) = delete;
    ~session_dir() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    std::string path;
};

struct outcome {
    std::vector<int> statuses;         ///< waitpid's, one a rank
    std::string output;                ///< of all ranks, stdout and stderr
    std::vector<server_event> events;  ///< of both servers
    bool timed_out = false;

    int count(server_event::kind what) const {
        return static_cast<int>(std::count_if(events.begin(), events.end(), [what](auto const& e) { return e.what == what; }));
    }
    bool all_ended_well() const {
        return !timed_out &&
               std::all_of(statuses.begin(), statuses.end(), [](int s) { return WIFEXITED(s) && WEXITSTATUS(s) == 0; });
    }
    /// How often a line stands in the output.
    int lines_with(std::string const& text) const {
        int found = 0;
        for (auto at = output.find(text); at != std::string::npos; at = output.find(text, at + text.size())) ++found;
        return found;
    }
};

inline unique_fd open_pidfd(pid_t pid) {
    return unique_fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

struct rank_handle {
    pid_t pid = 0;
    unique_fd exit_fd;
    unique_fd output;
};

inline rank_handle start(std::vector<std::string> command, environment const& variables) {
    auto [from_rank, to_parent] = make_pipe();
    auto lines = variables.lines();
    std::vector<char*> argv, envp;
    for (auto& word : command) argv.push_back(word.data());
    for (auto& line : lines) envp.push_back(line.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    pid_t const pid = fork();
    if (pid < 0) throw_system("fork", command.front());
    if (pid == 0) {
        dup2(to_parent.get(), STDOUT_FILENO);
        dup2(to_parent.get(), STDERR_FILENO);
        execve(argv[0], argv.data(), envp.data());
        _exit(127);
    }
    return {pid, open_pidfd(pid), std::move(from_rank)};
}

/// Reads what is there; false at the end.
inline bool drain(int fd, std::string& into) {
    std::array<char, 4096> buffer;
    auto const count = read(fd, buffer.data(), buffer.size());
    if (count > 0) into.append(buffer.data(), static_cast<std::size_t>(count));
    return count > 0;
}

/// The PMIx library starts one server in the life of a process, so every job runs in a process of its own.
inline outcome run_job_here(int size, std::vector<std::string> const& command, environment variables, library_start when) {
    session_dir const session;
    job const description{.nspace = "test." + std::to_string(getpid()),
                          .host = "localhost",
                          .world_size = size,
                          .session_dir = session.path,
                          .executable = command.front(),
                          .cpusets = {},
                          .shared_memory_dir = {},
                          .usable_cores = 1};
    server pmix_server(description, when);
    pmi1_server pmi_server(description);
    scrub_inherited(variables);
    // Leaks that the sanitizer finds in a rank are its MPI library's.
    variables.set("ASAN_OPTIONS", "detect_leaks=0");

    outcome result;
    result.statuses.resize(static_cast<std::size_t>(size), -1);
    std::vector<rank_handle> ranks;
    for (int rank = 0; rank < size; ++rank) {
        auto own = variables;
        pmix_server.set_client_environment(rank, own);
        pmi_server.set_client_environment(rank, own);
        ranks.push_back(start(command, own));
    }
    auto const kill_all = [&ranks] {
        for (auto const& rank : ranks)
            if (rank.exit_fd) kill(rank.pid, SIGKILL);
    };
    auto const take = [&](std::vector<server_event> const& events) {
        for (auto const& event : events) {
            result.events.push_back(event);
            if (event.what == server_event::kind::aborted) kill_all();
        }
    };
    auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    for (int living = size; living > 0;) {
        std::vector<pollfd> fds{{pmix_server.event_fd(), POLLIN, 0}, {pmi_server.event_fd(), POLLIN, 0}};
        for (auto const& rank : ranks) {
            fds.push_back({rank.exit_fd.get(), POLLIN, 0});
            fds.push_back({rank.output.get(), POLLIN, 0});
        }
        auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
        if (left <= 0 || ::poll(fds.data(), fds.size(), static_cast<int>(left)) == 0) {
            result.timed_out = true;
            kill_all();
        }
        take(pmix_server.poll());
        take(pmi_server.poll());
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            if ((fds[3 + 2 * i].revents & (POLLIN | POLLHUP)) != 0 && !drain(ranks[i].output.get(), result.output))
                ranks[i].output.reset();
            if (!ranks[i].exit_fd || (!result.timed_out && (fds[2 + 2 * i].revents & POLLIN) == 0)) continue;
            if (waitpid(ranks[i].pid, &result.statuses[i], 0) != ranks[i].pid) continue;
            ranks[i].exit_fd.reset();
            --living;
            take(pmix_server.poll());
            pmix_server.report_exit(static_cast<int>(i), result.statuses[i]);
            pmix_server.forget_ended();
        }
    }
    for (auto& rank : ranks)
        while (rank.output && drain(rank.output.get(), result.output)) {
        }
    take(pmix_server.poll());
    return result;
}

/// Runs `body` in a child process. Its failures are printed there; false if there were any.
template <typename Body>
bool in_child(Body body) {
    pid_t const pid = fork();
    if (pid < 0) throw_system("fork", "");
    if (pid == 0) {
        int code = 1;
        try {
            body();
            code = testing::Test::HasFailure() ? 1 : 0;
        } catch (std::exception const& e) {
            std::fprintf(stderr, "in a child process: %s\n", e.what());
        }
        std::fflush(nullptr);
        _exit(code);
    }
    int status = -1;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

inline void write_outcome(std::ostream& to, outcome const& result) {
    to << result.timed_out << ' ' << result.statuses.size() << ' ' << result.events.size() << '\n';
    for (int const status : result.statuses) to << status << '\n';
    for (auto const& event : result.events)
        to << static_cast<int>(event.what) << ' ' << event.rank << ' ' << event.code << ' ' << event.text.size() << '\n'
           << event.text << '\n';
    to << result.output;
}

inline outcome read_outcome(std::istream& from) {
    outcome result;
    std::size_t statuses = 0, events = 0;
    from >> result.timed_out >> statuses >> events;
    result.statuses.resize(statuses);
    for (int& status : result.statuses) from >> status;
    for (std::size_t i = 0; i < events; ++i) {
        int what = 0;
        std::size_t bytes = 0;
        server_event event{};
        from >> what >> event.rank >> event.code >> bytes;
        from.ignore(1);
        event.what = static_cast<server_event::kind>(what);
        event.text.resize(bytes);
        from.read(event.text.data(), static_cast<std::streamsize>(bytes));
        result.events.push_back(std::move(event));
    }
    from.ignore(1);
    result.output.assign(std::istreambuf_iterator<char>(from), {});
    return result;
}

/// Runs `command` as every one of `size` ranks until all have ended; an abort ends the others by SIGKILL.
inline outcome run_job(int size, std::vector<std::string> const& command, environment variables = environment::capture(),
                       library_start when = library_start::at_once) {
    session_dir const results;
    auto const file = results.path + "/outcome";
    EXPECT_TRUE(in_child([&] {
        std::ofstream to(file, std::ios::binary);
        write_outcome(to, run_job_here(size, command, variables, when));
    }));
    std::ifstream from(file, std::ios::binary);
    return read_outcome(from);
}

}  // namespace muster::pmix::test
