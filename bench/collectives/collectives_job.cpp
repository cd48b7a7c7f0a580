#include "bench/collectives/collectives_job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <sstream>
#include <thread>

#include "base/process/files.hpp"
#include "base/process/process.hpp"
#include "base/throw_error.hpp"
#include "base/trust/open_output_file.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

unique_fd make_named_pipe(std::string const& path) {
    if (::mkfifo(path.c_str(), 0600) != 0) throw_system("mkfifo", path);
    // Opened for both ways: opening then does not wait for a reader, and the pipe has no end of file.
    unique_fd made(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!made) throw_system("open", path);
    return made;
}

/// The ranks end on SIGTERM, which launchers pass on: nothing outlives this process.
pid_t start(std::vector<std::string> const& command, environment const& variables, std::string const& log) {
    auto const to = open_output_file(log, {}, if_there::kept, 0600);
    if (::fcntl(to.get(), F_SETFL, O_APPEND) != 0) throw_system("fcntl", log);
    return start_process({.path = command.front(),
                          .arguments = &command,
                          .variables = &variables,
                          .working_dir = "",
                          .stdout_fd = to.get(),
                          .stderr_fd = to.get(),
                          .cores = {},
                          .open_files = {},
                          .death_signal = SIGTERM});
}

}  // namespace

rank_answers answers_of(std::span<rank_answer const> ranks) {
    rank_answers all{0, 0, ranks.front().first, 0};
    for (auto const& each : ranks) {
        all.first = std::max(all.first, each.first);
        all.second += each.second;
        all.least = std::min(all.least, each.first);
        all.mean += each.first / static_cast<double>(ranks.size());
    }
    return all;
}

collectives_job::collectives_job(std::string folder, std::string name, int ranks,
                                 std::vector<std::vector<std::string>> const& commands, environment const& variables)
    : folder_(std::move(folder)), name_(std::move(name)), ranks_(ranks) {
    for (int rank = 0; rank < ranks; ++rank) orders_.push_back(make_named_pipe(fmt::format("{}/{}.{}", folder_, name_, rank)));
    answers_ = make_named_pipe(fmt::format("{}/{}.out", folder_, name_));
    for (auto const& command : commands)
        processes_.push_back(start(command, variables, fmt::format("{}/{}.log", folder_, name_)));
}

collectives_job::~collectives_job() {
    give("end");
    auto const until = clock::now() + std::chrono::seconds(5);
    for (pid_t const process : processes_) {
        if (process < 0) continue;
        int status = 0;
        while (::waitpid(process, &status, WNOHANG) == 0) {
            if (clock::now() > until) {
                ::kill(-process, SIGKILL);
                ::waitpid(process, &status, 0);
                break;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }
}

void collectives_job::give(std::string const& order) {
    std::string const text = order + "\n";
    for (auto const& each : orders_)
        for (std::size_t done = 0; done < text.size();) {
            ssize_t const written = ::write(each.get(), text.data() + done, text.size() - done);
            if (written < 0) return;
            done += static_cast<std::size_t>(written);
        }
}

bool collectives_job::any_ended() {
    for (auto& process : processes_) {
        if (process < 0) return true;
        if (::waitpid(process, nullptr, WNOHANG) == process) process = -1;
        if (process < 0) return true;
    }
    return false;
}

std::string collectives_job::end_of_log() const {
    auto const all = read_text_file(fmt::format("{}/{}.log", folder_, name_), SIZE_MAX);
    return all.substr(all.size() - std::min<std::size_t>(all.size(), 2000));
}

std::string collectives_job::line(duration deadline) {
    auto const until = clock::now() + std::chrono::duration_cast<clock::duration>(deadline);
    for (;;) {
        if (auto const end = unread_.find('\n'); end != std::string::npos) {
            std::string found = unread_.substr(0, end);
            unread_.erase(0, end + 1);
            return found;
        }
        pollfd wait{answers_.get(), POLLIN, 0};
        if (::poll(&wait, 1, 200) > 0) {
            std::array<char, 4096> bytes{};
            ssize_t const got = ::read(answers_.get(), bytes.data(), bytes.size());
            if (got > 0) unread_.append(bytes.data(), static_cast<std::size_t>(got));
            continue;
        }
        bool const ended = any_ended();
        if (ended || clock::now() > until)
            throw_error(ended ? errc::peer_failed : errc::timeout, "{}: {}; the end of its output:\n{}", name_,
                        ended ? "a process ended before it answered" : "no answer within " + format_duration(deadline),
                        end_of_log());
    }
}

rank_answers collectives_job::ask(std::string const& order, duration deadline) {
    give(order);
    std::vector<rank_answer> all(static_cast<std::size_t>(ranks_));
    for (auto& each : all) {
        std::istringstream words(line(deadline));
        int rank = 0;
        if (!(words >> rank >> each.first >> each.second))
            throw error(errc::invalid_data, name_ + ": an answer is not three numbers");
    }
    return answers_of(all);
}

std::string collectives_job::version(duration deadline) {
    give("version");
    std::string const text = line(deadline);
    return text.size() > 2 ? text.substr(2) : text;
}

}  // namespace muster
