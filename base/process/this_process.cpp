#include "base/process/this_process.hpp"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

std::filesystem::path self_program() {
    std::error_code fault;
    auto path = std::filesystem::read_symlink("/proc/self/exe", fault);
    if (fault) throw_error(errc::system, "cannot read the link /proc/self/exe: {}; mount /proc", fault.message());
    return path;
}

void replace_program(std::string const& path, std::vector<std::string> const& words, environment const& variables) {
    auto const lines = variables.lines();
    std::vector<char*> argv, envp;
    for (auto const& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    for (auto const& line : lines) envp.push_back(const_cast<char*>(line.c_str()));
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    std::fflush(nullptr);
    ::signal(SIGXFSZ, SIG_DFL);  // which run_main() has changed, and the program would inherit
    ::execve(path.c_str(), argv.data(), envp.data());
    throw_system("execve", path);
}

std::uint64_t signals_in_status(pid_t pid, std::string_view field) {
    auto const status = read_text_file("/proc/" + std::to_string(pid) + "/status");
    for (auto const line : split(status, '\n'))
        if (line.starts_with(field)) {
            std::string const mask(trim(line.substr(field.size())));
            return std::strtoull(mask.c_str(), nullptr, 16);
        }
    return 0;
}

namespace {

double milliseconds_of(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

}  // namespace

void end_phase(std::string_view name) {
    if (!spdlog::should_log(spdlog::level::trace)) return;
    // The time before main is known as processor time only: the kernel tells the start of a process in steps of 10 ms.
    double const cpu = milliseconds_of(CLOCK_PROCESS_CPUTIME_ID);
    double const now = milliseconds_of(CLOCK_MONOTONIC);
    static double const first = now - cpu;
    static double last = first;
    spdlog::trace("phase {:>7.2f} ms  +{:>6.2f} ms  cpu {:>6.2f} ms  {}", now - first, now - last, cpu, name);
    last = milliseconds_of(CLOCK_MONOTONIC);
}

}  // namespace muster
