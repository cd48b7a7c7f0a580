#include "launch/remote/pbs_remote.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "launch/system/network.hpp"
#include "launch/system/signal_table.hpp"
#include "launch/system/signals.hpp"

namespace muster {

namespace {

std::optional<std::string> setting_of(std::string_view pbs_conf, std::string_view name) {
    std::optional<std::string> value;
    for (auto const line : split(pbs_conf, '\n')) {
        auto const setting = trim(line);
        if (setting.size() > name.size() + 1 && setting.starts_with(name) && setting[name.size()] == '=')
            value = trim(setting.substr(name.size() + 1));
    }
    return value;
}

/// A limit in the form of bash's ulimit, and the unit that it counts in.
struct limit {
    int resource;
    char option;
    rlim_t unit;
};
constexpr std::array limits{limit{RLIMIT_CORE, 'c', 1024},    limit{RLIMIT_DATA, 'd', 1024}, limit{RLIMIT_FSIZE, 'f', 1024},
                            limit{RLIMIT_MEMLOCK, 'l', 1024}, limit{RLIMIT_NOFILE, 'n', 1},  limit{RLIMIT_STACK, 's', 1024},
                            limit{RLIMIT_CPU, 't', 1},        limit{RLIMIT_NPROC, 'u', 1},   limit{RLIMIT_AS, 'v', 1024}};

/// Passes on what pbs_tmrsh prints until it ends. Returns whether it has lost its pbs_mom, as its last words say: the task then
/// runs on.
bool pass_on_errors(int from) {
    constexpr std::string_view lost_mom = "tm_poll(obit)";
    std::string last;
    std::array<char, 4096> block;
    for (;;) {
        auto const n = ::read(from, block.data(), block.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return last.find(lost_mom) != std::string::npos;
        auto const got = std::string_view(block.data(), static_cast<std::size_t>(n));
        [[maybe_unused]] auto const written = ::write(STDERR_FILENO, got.data(), got.size());
        last = (last + std::string(got));
        if (last.size() > block.size()) last.erase(0, last.size() - block.size());
    }
}

/// Waits for an engine that takes its agent's end as its daemon's.
void wait_for_end_of(pid_t parent) {
    timespec const pause{0, 200'000'000};
    while (::getppid() == parent) ::nanosleep(&pause, nullptr);
}

}  // namespace

std::optional<std::string> pbs_exec(std::string_view pbs_conf) {
    return setting_of(pbs_conf, "PBS_EXEC");
}

std::string own_node_file(std::string_view pbs_conf, std::string_view job_id) {
    if (job_id.empty()) return {};
    return fmt::format("{}/aux/{}", setting_of(pbs_conf, "PBS_HOME").value_or("/var/spool/pbs"), job_id);
}

std::string umask_and_limits() {
    mode_t const mask = ::umask(0);
    ::umask(mask);
    std::string words = fmt::format("umask {:04o}; ", mask);
    for (auto const& one : limits) {
        rlimit now{};
        if (::getrlimit(one.resource, &now) != 0) continue;
        auto const value = now.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(now.rlim_cur / one.unit);
        words += fmt::format("ulimit -S{} {} 2>/dev/null; ", one.option, value);
    }
    return words;
}

std::string spelled_as_in(std::string_view node_file, std::string_view host) {
    std::string_view alike;
    for (auto const line : split(node_file, '\n')) {
        auto const name = trim(line);
        if (name == host) return std::string(name);
        if (alike.empty() && !name.empty() && short_name(name) == short_name(host)) alike = name;
    }
    return std::string(alike.empty() ? host : alike);
}

int tmrsh_command(std::vector<std::string> const& words, environment const& variables) {
    bool const stays = !words.empty() && words.front() == "--stay";
    auto const args = std::vector(words.begin() + (stays ? 1 : 0), words.end());
    if (args.size() < 2) throw error(errc::usage, "muster tmrsh HOST COMMAND… is what engines call in a PBS job; it needs both");
    auto const named = variables.get("PBS_NODEFILE");
    if (!named) throw error(errc::unavailable, "muster tmrsh: PBS_NODEFILE is not set; this works only in a PBS job");
    auto const conf = variables.get_or("PBS_CONF_FILE", "/etc/pbs.conf");
    auto const settings = read_text_file(conf);
    auto const own = own_node_file(settings, variables.get_or("PBS_JOBID", ""));
    auto const hosts = read_text_file(own);
    auto to_tmrsh = variables;
    if (!hosts.empty()) to_tmrsh.set("PBS_NODEFILE", own);
    auto const folder = variables.get("PBS_EXEC").value_or(pbs_exec(settings).value_or("/opt/pbs"));
    std::string const program = folder + "/bin/pbs_tmrsh";
    std::string const host = spelled_as_in(hosts.empty() ? read_text_file(*named) : hosts, args.front());
    std::string const command = umask_and_limits() + join(std::span(args).subspan(1), " ");
    ignore_signals(process_kind::pbs_shell);  // remains in effect through exec
    pid_t const parent = ::getppid();
    auto [said, says] = make_pipe();
    pid_t const child = ::fork();
    if (child < 0) throw_system("fork", "for " + program);
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::dup2(says.get(), STDERR_FILENO);
        try {
            replace_program(program, {"pbs_tmrsh", host, "/bin/bash", "-c", command}, to_tmrsh);
        } catch (error const&) {
            std::fprintf(stderr, "muster tmrsh: cannot execute %s: %s; PBS_EXEC in %s says where PBS is\n", program.c_str(),
                         std::strerror(errno), conf.c_str());
            ::_exit(127);
        }
    }
    says.reset();
    bool const lost = pass_on_errors(said.get());
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (stays && lost) wait_for_end_of(parent);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : shell_code(status);
}

std::string tmrsh_script(std::string const& muster, bool stays) {
    return fmt::format("exec {} tmrsh {}\"$@\"\n", shell_quote(muster), stays ? "--stay " : "");
}

}  // namespace muster
