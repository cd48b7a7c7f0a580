#include "base/process/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/error.hpp"
#include "base/process/child_descriptors.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"

namespace muster {

namespace {

/// Everything the child needs, made before clone: until exec it shares our memory and must not allocate.
struct child_plan {
    char const* path;
    char* const* argv;
    char* const* envp;
    char const* working_dir;
    int const* fds;
    unsigned first_unneeded;  ///< descriptors from here on are not the child's
    bool shares_descriptors;  ///< until it has made its own table of them
    cpu_set_t const* mask;
    std::size_t mask_bytes;
    rlimit const* open_files;
    bool own_group;
    bool own_session;
    int death_signal;
    pid_t parent;
    soft_limit const* limits;
    std::size_t limit_count;
    int file_mask;
};

constexpr char const* unshare_step = "close_range";

struct child_failure {
    int error = 0;
    char const* step = nullptr;
};

void reset_signals() {
    for (int s = 1; s < NSIG; ++s) {
        struct sigaction action {};
        if (s == SIGKILL || s == SIGSTOP || ::sigaction(s, nullptr, &action) != 0) continue;
        if (action.sa_handler == SIG_DFL) continue;
        action = {};
        action.sa_handler = SIG_DFL;
        ::sigaction(s, &action, nullptr);
    }
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Limits that cannot be had as they are, or at all, are no reason not to run.
void set_limits(child_plan const& plan) {
    for (std::size_t i = 0; i < plan.limit_count; ++i) {
        auto const which = static_cast<decltype(RLIMIT_NOFILE)>(plan.limits[i].resource);
        rlimit now{};
        if (::getrlimit(which, &now) != 0) continue;
        auto const wanted = static_cast<rlim_t>(plan.limits[i].value);
        now.rlim_cur = wanted < now.rlim_max ? wanted : now.rlim_max;  // RLIM_INFINITY is the largest
        ::setrlimit(which, &now);
    }
    if (plan.file_mask >= 0) ::umask(static_cast<mode_t>(plan.file_mask));
}

/// Runs in the child; returns the step that failed. Only system calls.
char const* prepare(child_plan const& plan) {
    if (plan.shares_descriptors && ::syscall(SYS_close_range, plan.first_unneeded, ~0U, CLOSE_RANGE_UNSHARE) != 0)
        return unshare_step;
    if (plan.own_session)
        ::setsid();
    else if (plan.own_group)
        ::setpgid(0, 0);
    if (::prctl(PR_SET_PDEATHSIG, plan.death_signal) != 0) return "prctl(PR_SET_PDEATHSIG)";
    if (::getppid() != plan.parent) ::_exit(1);  // the parent died before the line above
    for (int i = 0; i < 3; ++i)
        if (::dup2(plan.fds[i], i) < 0) return "dup2";
    if (plan.open_files != nullptr && ::setrlimit(RLIMIT_NOFILE, plan.open_files) != 0) return "setrlimit(RLIMIT_NOFILE)";
    set_limits(plan);
    if (plan.mask != nullptr && ::sched_setaffinity(0, plan.mask_bytes, plan.mask) != 0) return "sched_setaffinity";
    if (plan.working_dir != nullptr && ::chdir(plan.working_dir) != 0) return "chdir";
    reset_signals();
    return nullptr;
}

struct child_task {
    child_plan const& plan;
    child_failure& failure;
};

/// The child's main; it never returns.
int run_child(void* argument) {
    auto const& task = *static_cast<child_task*>(argument);
    char const* step = prepare(task.plan);
    if (step == nullptr) {
        ::execve(task.plan.path, task.plan.argv, task.plan.envp);
        step = "execve";
    }
    task.failure.error = errno;
    task.failure.step = step;
    ::_exit(127);
}

/// As vfork, with a stack of its own: the child shares our memory, and we wait until it runs its program. It shares the table of
/// descriptors too until it has taken from it what it needs.
pid_t clone_exec(child_plan const& plan, child_failure& failure) {
    alignas(64) thread_local std::array<std::byte, 64 << 10> stack;  // this thread waits, so it has one child at a time
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, &before);  // no handler may run in the child while it shares our memory
    child_task task{plan, failure};
    int const files = plan.shares_descriptors ? CLONE_FILES : 0;
    pid_t const pid = ::clone(run_child, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD | files, &task);
    int const code = errno;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (pid < 0) {
        failure.error = code;
        failure.step = "clone";
    }
    return pid;
}

void reap(pid_t pid) {
    while (pid > 0 && ::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
}

/// A kernel before 5.9, or a container's filter of system calls, does not know close_range: then the whole table is copied.
pid_t start_child(child_plan plan, child_failure& failure) {
    static std::atomic<bool> knows_close_range{true};
    plan.shares_descriptors = knows_close_range;
    pid_t pid = clone_exec(plan, failure);
    if (failure.step != unshare_step) return pid;
    reap(pid);
    knows_close_range = false;
    plan.shares_descriptors = false;
    failure = {};
    return clone_exec(plan, failure);
}

std::vector<char*> pointers(std::vector<std::string> const& strings) {
    std::vector<char*> all;
    all.reserve(strings.size() + 1);
    for (auto const& s : strings) all.push_back(const_cast<char*>(s.c_str()));
    all.push_back(nullptr);
    return all;
}

/// The program of a script's first line, as that line has it: it may end in a carriage return.
std::string interpreter_of(std::string const& script) {
    unique_fd const file(::open(script.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    char start[256];
    auto const got = file ? ::read(file.get(), start, sizeof start) : -1;
    std::string_view line(start, got > 0 ? static_cast<std::size_t>(got) : 0);
    if (!line.starts_with("#!")) return {};
    line = line.substr(2, line.find('\n') - 2);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return std::string(line.substr(0, line.find_first_of(" \t")));
}

std::string missing_interpreter(std::string const& path) {
    auto interpreter = interpreter_of(path);
    if (interpreter.empty()) return fmt::format("cannot execute {}: its loader is not there; build it for this system", path);
    bool const dos = interpreter.ends_with('\r');
    if (dos) interpreter.pop_back();
    return fmt::format("cannot execute {}: its interpreter {}{} is not there; {}", path, interpreter,
                       dos ? "\\r, with a carriage return," : "",
                       dos ? "write its lines with \\n alone: sed -i 's/\\r$//' " + path : "correct its #! line");
}

[[noreturn]] void throw_failure(child_failure const& failure, process_request const& request) {
    std::string_view const step = failure.step;
    if (step == "execve") {
        if (failure.error == ENOEXEC)
            throw program_error(
                errc::unavailable,
                fmt::format("cannot execute {}: it is neither a program nor a script with a #! line; run it by its "
                            "interpreter, as in: muster run -- bash {}",
                            request.path, request.path));
        if (failure.error == E2BIG)
            throw error(
                errc::system,
                fmt::format("cannot execute {}: its arguments and environment are too large; pass them by a file", request.path));
        if (failure.error == ENOENT) throw program_error(errc::not_found, missing_interpreter(request.path));
        throw program_error(errc::unavailable,
                            fmt::format("cannot execute {}: {}; check its permissions and those of its interpreter", request.path,
                                        std::strerror(failure.error)));
    }
    if (step == "clone")
        throw_system("clone", "for " + request.path, failure.error, "raise the limit of processes with ulimit -u");
    if (step == "chdir") throw_system("chdir", request.working_dir, failure.error, "give another working directory");
    if (step == "sched_setaffinity")
        throw_system("sched_setaffinity", "to CPUs " + request.cores.to_list(), failure.error,
                     "bind it to CPUs that this process may use, or to none");
    throw_system(step, "in the new process of " + request.path, failure.error);
}

bool is_executable_file(std::string const& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::string search_path(environment const& variables) {
    return variables.get_or("PATH", "/usr/local/bin:/usr/bin:/bin");
}

/// The first executable file of that name along PATH; empty if there is none.
std::string first_on_path(std::string const& program, environment const& variables) {
    auto const folders = search_path(variables);
    for (auto const folder : split(folders, ':')) {
        std::string path = fmt::format("{}/{}", folder.empty() ? std::string_view(".") : folder, program);
        if (is_executable_file(path)) return path;
    }
    return {};
}

std::string suggestion(std::string const& program) {
    if (program.ends_with(".py")) return fmt::format("chmod +x it, or run: muster run -- python3 {}", program);
    if (program.ends_with(".sh")) return fmt::format("chmod +x it, or run: muster run -- bash {}", program);
    return "chmod +x it";
}

}  // namespace

pid_t start_process(process_request const& request) {
    bool const needs_null = request.stdin_fd < 0 || request.stdout_fd < 0 || request.stderr_fd < 0;
    unique_fd const null(needs_null ? ::open("/dev/null", O_RDWR | O_CLOEXEC) : -1);
    if (needs_null && !null) throw_system("open", "/dev/null", 0, "make that device: mknod /dev/null c 1 3");
    auto const fd_or_null = [&](int fd) { return fd >= 0 ? fd : null.get(); };
    child_descriptors const descriptors(
        {fd_or_null(request.stdin_fd), fd_or_null(request.stdout_fd), fd_or_null(request.stderr_fd)});
    auto const lines = request.variables->lines();
    auto const argv = pointers(*request.arguments);
    auto const envp = pointers(lines);
    int const highest = request.cores.empty() ? 0 : request.cores.cpus.back();
    std::vector<cpu_set_t> mask(static_cast<std::size_t>(highest) / CPU_SETSIZE + 1);
    std::size_t const mask_bytes = mask.size() * sizeof(cpu_set_t);
    CPU_ZERO_S(mask_bytes, mask.data());
    for (int const cpu : request.cores.cpus) CPU_SET_S(static_cast<std::size_t>(cpu), mask_bytes, mask.data());
    child_plan const plan{request.path.c_str(),
                          argv.data(),
                          envp.data(),
                          request.working_dir.empty() ? nullptr : request.working_dir.c_str(),
                          descriptors.numbers(),
                          descriptors.first_unneeded(),
                          false,
                          request.cores.empty() ? nullptr : mask.data(),
                          mask_bytes,
                          request.open_files ? &*request.open_files : nullptr,
                          request.own_group,
                          request.own_session,
                          request.death_signal,
                          ::getpid(),
                          request.limits.data(),
                          request.limits.size(),
                          request.file_mask};
    child_failure failure;
    pid_t const pid = start_child(plan, failure);
    if (failure.step != nullptr) {
        reap(pid);
        throw_failure({failure.error, failure.step}, request);
    }
    return pid;
}

std::string find_program(std::string const& program, environment const& variables, std::string const& working_dir) {
    if (program.find('/') != std::string::npos) {
        std::string const path = program.front() == '/' || working_dir.empty() ? program : working_dir + "/" + program;
        if (is_executable_file(path)) return path;
        struct stat info {};
        if (::stat(path.c_str(), &info) != 0)
            throw program_error(errc::not_found,
                                fmt::format("no program {}: {}; check the path{}", path, std::strerror(errno),
                                            program.front() == '/' ? "" : ", which is relative to the working directory"));
        if (S_ISDIR(info.st_mode))
            throw program_error(errc::unavailable, fmt::format("cannot execute {}: it is a directory; name a program", path));
        throw program_error(errc::unavailable,
                            fmt::format("cannot execute {}: it has no execute permission; {}", path, suggestion(program)));
    }
    if (auto path = first_on_path(program, variables); !path.empty()) return path;
    std::string const here = working_dir.empty() ? program : working_dir + "/" + program;
    std::string hint = "install it, load its module, or give its path";
    auto const blank = program.find(' ');
    auto const equals = program.find('=');
    if (blank != std::string::npos && !first_on_path(program.substr(0, blank), variables).empty())
        hint = fmt::format("its name has a blank: give program and arguments as words of their own: {}", program);
    else if (equals != std::string::npos && equals > 0)
        hint = fmt::format("set a variable by -x {} in front of the --", program);
    else if (::access(here.c_str(), F_OK) == 0)
        hint =
            is_executable_file(here) ? fmt::format("it lies in the working directory: write ./{}", program) : suggestion(program);
    throw program_error(errc::not_found, fmt::format("no program '{}' along PATH={}; {}", program, search_path(variables), hint));
}

std::string find_program_or_nothing(std::string const& program, environment const& variables) {
    if (program.find('/') == std::string::npos) return first_on_path(program, variables);
    return is_executable_file(program) ? program : "";
}

}  // namespace muster
