#include "launch/system/signals.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/error.hpp"
#include "launch/system/signal_table.hpp"

namespace muster {

namespace {

constexpr std::chrono::milliseconds repeat_window{200};

struct named_signal {
    int number;
    char const* name;
};
constexpr named_signal names[] = {
    {SIGHUP, "HUP"},   {SIGINT, "INT"},       {SIGQUIT, "QUIT"}, {SIGILL, "ILL"},       {SIGTRAP, "TRAP"}, {SIGABRT, "ABRT"},
    {SIGBUS, "BUS"},   {SIGFPE, "FPE"},       {SIGKILL, "KILL"}, {SIGUSR1, "USR1"},     {SIGSEGV, "SEGV"}, {SIGUSR2, "USR2"},
    {SIGPIPE, "PIPE"}, {SIGALRM, "ALRM"},     {SIGTERM, "TERM"}, {SIGSTKFLT, "STKFLT"}, {SIGCHLD, "CHLD"}, {SIGCONT, "CONT"},
    {SIGSTOP, "STOP"}, {SIGTSTP, "TSTP"},     {SIGTTIN, "TTIN"}, {SIGTTOU, "TTOU"},     {SIGURG, "URG"},   {SIGXCPU, "XCPU"},
    {SIGXFSZ, "XFSZ"}, {SIGVTALRM, "VTALRM"}, {SIGPROF, "PROF"}, {SIGWINCH, "WINCH"},   {SIGPOLL, "POLL"}, {SIGPWR, "PWR"},
    {SIGSYS, "SYS"},
};

/// Identifies the thread that called take_signals.
struct signal_reader {
    std::atomic<pid_t> process{0}, thread{0};
} reader;
static_assert(std::atomic<pid_t>::is_always_lock_free);

pid_t this_thread() noexcept {
    return static_cast<pid_t>(::syscall(SYS_gettid));
}

/// Runs in a thread that has not blocked the signal: e.g. a library's own (NVML's), which existed before.
void pass_to_reader(int signal_number) {
    int const code = errno;
    if (reader.process == ::getpid() && reader.thread != this_thread()) {
        ::syscall(SYS_tgkill, reader.process.load(), reader.thread.load(), signal_number);
    } else {  // a child of fork() takes signals as usual
        ::signal(signal_number, SIG_DFL);
        ::raise(signal_number);
    }
    errno = code;
}

}  // namespace

char const* signal_name(int signal_number) noexcept {
    auto const* const found =
        std::find_if(std::begin(names), std::end(names), [&](auto const& row) { return row.number == signal_number; });
    return found == std::end(names) ? nullptr : found->name;
}

bool is_ignored(int signal_number) noexcept {
    struct sigaction action {};
    return ::sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

std::vector<int> launcher_signals() {
    auto numbers = taken_signals(process_kind::launcher);
    std::erase_if(numbers, is_ignored);
    return numbers;
}

bool ends_the_run(int signal_number) noexcept {
    return signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGHUP || signal_number == SIGQUIT;
}

bool is_notice(int signal_number) noexcept {
    return signal_number == SIGUSR1 || signal_number == SIGUSR2;
}

bool signal_requests::is_repeat(int signal_number) {
    if (signal_number == known_) return true;
    auto const now = std::chrono::steady_clock::now();
    auto const [last, first_time] = last_.try_emplace(signal_number, now);
    bool const repeat = !first_time && now - last->second < repeat_window;
    if (!repeat) last->second = now;
    return repeat;
}

unique_fd take_signals(std::span<int const> numbers, std::string_view whom) {
    sigset_t set;
    sigemptyset(&set);
    for (int const s : numbers) sigaddset(&set, s);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    reader.process = ::getpid();
    reader.thread = this_thread();
    struct sigaction pass {};
    pass.sa_handler = pass_to_reader;
    pass.sa_flags = SA_RESTART;
    for (int const s : numbers) ::sigaction(s, &pass, nullptr);
    unique_fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) throw_system("signalfd", fmt::format("for {}", whom));
    return fd;
}

std::optional<int> take_request_to_end(int signals_fd) {
    signalfd_siginfo info{};
    while (::read(signals_fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
        if (int const s = static_cast<int>(info.ssi_signo); ends_the_run(s)) return s;
    return std::nullopt;
}

std::string describe_end(int wait_status) {
    if (!WIFSIGNALED(wait_status)) return fmt::format("exited with code {}", WEXITSTATUS(wait_status));
    int const s = WTERMSIG(wait_status);
    char const* const name = signal_name(s);
    return fmt::format("was killed by signal {} ({}){}", s, name != nullptr ? fmt::format("SIG{}", name) : "real-time",
                       WCOREDUMP(wait_status) ? ", core dumped" : "");
}

int shell_code(int wait_status) noexcept {
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace muster
