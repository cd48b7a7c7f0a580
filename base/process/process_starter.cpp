#include "base/process/process_starter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/throw_error.hpp"
#include "base/unique_fd.hpp"

namespace muster {

namespace {

/// Sets every signal to its default or, some, to be ignored, and lets all through. Not by sigaction(): from glibc 2.41 on it takes a lock for SIGABRT, by the number of the calling
/// thread, which several children that share our memory have in common, so that they and this process would wait for each other for ever.
void reset_signals(std::vector<int> const& ignored) noexcept {
    static constexpr std::byte all_default[64]{};  // a zeroed sigaction of the kernel, whatever its layout, is SIG_DFL
    alignas(void*) std::byte ignore[sizeof all_default]{};
    auto const handler = SIG_IGN;
    std::memcpy(ignore, &handler, sizeof handler);  // comes first in it
    for (int s = 1; s < NSIG; ++s)
        if (s != SIGKILL && s != SIGSTOP) ::syscall(SYS_rt_sigaction, s, all_default, nullptr, (NSIG - 1) / 8);
    for (int const s : ignored) ::syscall(SYS_rt_sigaction, s, ignore, nullptr, (NSIG - 1) / 8);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
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

}  // namespace

child_image::child_image(process_request request)
    : request_(std::move(request)),
      lines_(request_.variables->lines()),
      argv_(pointers(*request_.arguments)),
      envp_(pointers(lines_)),
      parent_(::getpid()) {
    request_.variables = nullptr;  // `lines_` stand for them
    auto const& cpus = request_.cores.cpus;
    if (cpus.empty()) return;
    mask_.resize(static_cast<std::size_t>(cpus.back()) / CPU_SETSIZE + 1);
    std::size_t const bytes = mask_.size() * sizeof(cpu_set_t);
    CPU_ZERO_S(bytes, mask_.data());
    for (int const cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, mask_.data());
}

pid_t child_image::clone(std::span<std::byte> stack, int flags, std::atomic<pid_t>* left) {
    static_assert(sizeof *left == sizeof(pid_t) && std::atomic<pid_t>::is_always_lock_free);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, &before);  // no handler may run in the child while it shares our memory
    pid_t const pid = ::clone(run, stack.data() + stack.size(), CLONE_VM | SIGCHLD | flags, this, nullptr, nullptr, left);
    int const code = errno;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (pid < 0) failure_ = {code, "clone"};
    return pid;
}

/// The child's main; it never returns.
int child_image::run(void* image) noexcept {
    auto& mine = *static_cast<child_image*>(image);
    char const* step = mine.prepare();
    if (step == nullptr) {
        ::execve(mine.request_.path.c_str(), mine.argv_.data(), mine.envp_.data());
        step = "execve";
    }
    mine.failure_ = {errno, step};
    ::_exit(127);
}

/// Runs in the child; returns the step that failed. Only system calls.
char const* child_image::prepare() const noexcept {
    if (request_.own_session)
        ::setsid();
    else if (request_.own_group)
        ::setpgid(0, 0);
    if (::prctl(PR_SET_PDEATHSIG, request_.death_signal) != 0) return "prctl(PR_SET_PDEATHSIG)";
    if (::getppid() != parent_) ::_exit(1);  // the parent died before the line above
    if (char const* const failed = take_descriptors()) return failed;
    if (request_.open_files && ::setrlimit(RLIMIT_NOFILE, &*request_.open_files) != 0) return "setrlimit(RLIMIT_NOFILE)";
    set_limits();
    if (!mask_.empty() && ::sched_setaffinity(0, mask_.size() * sizeof(cpu_set_t), mask_.data()) != 0) return "sched_setaffinity";
    if (!request_.working_dir.empty() && ::chdir(request_.working_dir.c_str()) != 0) return "chdir";
    reset_signals(request_.ignored);
    return nullptr;
}

/// Moves what is to become 0, 1 and 2 above these first, where it does not lie there.
char const* child_image::take_descriptors() const noexcept {
    int from[]{request_.stdin_fd, request_.stdout_fd, request_.stderr_fd};
    for (int& fd : from) {
        // open() is not used: it is a point of cancellation and changes what the child shares with the thread that goes on.
        if (fd < 0 && (fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC))) < 0)
            return "open(/dev/null)";
        if (fd <= STDERR_FILENO && (fd = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)) < 0) return "fcntl";
    }
    for (int i = 0; i < 3; ++i)
        if (::dup2(from[i], i) < 0) return "dup2";
    if (request_.kept_fd >= 0 && ::fcntl(request_.kept_fd, F_SETFD, 0) < 0) return "fcntl";
    return nullptr;
}

/// Limits that cannot be had as they are, or at all, are no reason not to run.
void child_image::set_limits() const noexcept {
    for (auto const& limit : request_.limits) {
        auto const which = static_cast<decltype(RLIMIT_NOFILE)>(limit.resource);
        rlimit now{};
        if (::getrlimit(which, &now) != 0) continue;
        auto const wanted = static_cast<rlim_t>(limit.value);
        now.rlim_cur = wanted < now.rlim_max ? wanted : now.rlim_max;  // RLIM_INFINITY is the largest
        ::setrlimit(which, &now);
    }
    if (request_.file_mask >= 0) ::umask(static_cast<mode_t>(request_.file_mask));
}

void child_image::throw_failure() const {
    auto const& [request, failure] = std::tie(request_, failure_);
    std::string_view const step = failure.step;
    if (step == "execve") {
        if (failure.error == ENOEXEC)
            throw program_error(errc::unavailable,
                                fmt::format("cannot execute {}: it is neither a program nor a script with a #! line; write its "
                                            "interpreter in front of it, as in: bash {}",
                                            request.path, request.path));
        if (failure.error == E2BIG)
            throw_error(errc::system, "cannot execute {}: its arguments and environment are too large; pass them by a file",
                        request.path);
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
                     "bind it to CPUs that this process may use, or to none (muster run --bind-to none)");
    throw_system(step, "in the new process of " + request.path, failure.error);
}

namespace {

constexpr int most_on_their_way = 16;

/// Sanitizers keep a record of each thread, which a child that runs beside it would share.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool one_by_one = true;
#else
constexpr bool one_by_one = false;
#endif

}  // namespace

process_starter::process_starter(int count) {
    for (int i = 0; i < (one_by_one ? 0 : std::min(count - 1, most_on_their_way)); ++i)
        places_.push_back(std::make_unique<place>());
}

process_starter::~process_starter() {
    for (auto const& each : places_) free_place(*each);
}

pid_t process_starter::begin(process_request const& request) {
    if (!std::exchange(any_, true) || places_.empty()) return start_process(request);
    auto& one = places_[next_];
    next_ = (next_ + 1) % places_.size();
    free_place(*one);
    one->child.emplace(request);
    one->on_its_way = 1;
    pid_t const pid = one->child->clone(one->stack, CLONE_CHILD_CLEARTID, &one->on_its_way);
    if (pid >= 0) return pid;
    one->on_its_way = 0;
    one->child->throw_failure();
}

/// Waits for the child that has it.
void process_starter::free_place(place& one) noexcept {
    for (pid_t seen = 0; (seen = one.on_its_way) != 0;)
        ::syscall(SYS_futex, &one.on_its_way, FUTEX_WAIT, seen, nullptr, nullptr, 0);
    if (!one.child) return;
    if (one.child->failure().step != nullptr && !failed_) try {
            one.child->throw_failure();
        } catch (...) {
            failed_ = std::current_exception();
        }
    one.child.reset();
}

void process_starter::finish() {
    for (auto const& each : places_) free_place(*each);
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
}

}  // namespace muster
