#include "launch/watch/failure_report.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "launch/system/signals.hpp"

namespace muster {

namespace {

std::string quote_lines(std::string_view text) {
    std::string quoted;
    for (auto const line : split(trim(text), '\n')) quoted += fmt::format("\n  | {}", line);
    return quoted;
}

/// Returns advice on what the last lines of a program say about its start.
std::string advice_on(std::string_view last_lines) {
    constexpr std::string_view missing = "No module named '";
    constexpr std::array<std::string_view, 5> with_option{"horovod", "horovod.torch", "horovod.keras", "horovod.tensorflow",
                                                          "horovod.tensorflow.keras"};
    auto const at = last_lines.rfind(missing);
    if (at == std::string_view::npos) return {};
    auto const rest = last_lines.substr(at + missing.size());
    auto const name = rest.substr(0, rest.find('\''));
    if (std::ranges::find(with_option, name) != with_option.end())
        return "muster has Horovod's names for it: muster run --as-horovod";
    if (name.starts_with("horovod."))
        return fmt::format("muster has no {}; docs/from-horovod.md lists what it has of Horovod", name);
    return {};
}

/// Returns whether torch has reported there that a DataLoader's worker, or a tensor on its way to one, found no room in /dev/shm.
bool tells_of_full_shm(std::string_view last_lines) {
    auto const has = [&](std::string_view part) { return last_lines.find(part) != std::string_view::npos; };
    return has("is killed by signal: Bus error") || (has("</torch_") && has("No space left on device"));
}

/// Returns advice on a signal that the program itself did not cause.
std::string advice_on(int signal_number) {
    switch (signal_number) {
        case SIGXFSZ: return "a file that it wrote reached the limit of file sizes; raise that with ulimit -f";
        case SIGXCPU: return "it reached the limit of processor time; raise that with ulimit -t";
        case SIGBUS:
            return "a file that it had mapped was cut off meanwhile, or the file system (/dev/shm) was full; see df /dev/shm "
                   "there";
        default: return "";
    }
}

bool limits_processor_time() noexcept {
    rlimit most{};
    return ::getrlimit(RLIMIT_CPU, &most) == 0 && most.rlim_cur != RLIM_INFINITY;
}

}  // namespace

std::string describe(failure_report const& failure) {
    auto text = fmt::format("{} {}, {} after the start", failure.rank, failure.what, format_duration(failure.lived));
    if (failure.others > 0) text += fmt::format("; ending the other {}", failure.others);
    if (!failure.earlier.empty()) text += "\n  " + failure.earlier;
    if (!failure.advice.empty()) text += "\n  " + failure.advice;
    if (tells_of_full_shm(failure.last_lines) && failure.advice.find("/dev/shm") == std::string::npos)
        text +=
            "\n  a data loader's worker found no room in /dev/shm: see df /dev/shm there; use fewer workers, or give --shm-size "
            "to the "
            "container";
    if (auto const advice = advice_on(failure.last_lines); !advice.empty()) text += fmt::format("\n  {}", advice);
    if (failure.quotes && !failure.last_lines.empty())
        text += "\n  the last it wrote on stderr:" + quote_lines(failure.last_lines);
    return text;
}

std::optional<end_fault> find_end_fault(int wait_status, memory_verdict memory) {
    if (wait_status == 0) return std::nullopt;
    int const number = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    bool const killed = number == SIGKILL;
    end_fault fault{describe_end(wait_status), shell_code(wait_status), advice_on(number)};
    if (memory == memory_verdict::in_cgroup || memory == memory_verdict::either) {
        fault.what += killed ? ": out of memory" : "";
        fault.advice =
            fmt::format("the kernel killed a process of its memory cgroup{}; ask for more memory, or start fewer ranks on a node",
                        memory == memory_verdict::in_cgroup
                            ? ", which was full"
                            : ", because that cgroup, or one above it, or the whole machine was full: dmesg there says which");
    } else if (memory == memory_verdict::shm_full) {
        fault.advice =
            "/dev/shm is full there, and MPI and data loaders need it; free space, or give --shm-size to the container";
    } else if (killed) {
        fault.advice =
            memory == memory_verdict::on_node
                ? "muster did not send it; the kernel has killed a process on that node since the start, because memory "
                  "was full: see dmesg there"
            : memory == memory_verdict::none
                ? "muster did not send it, nor did the kernel for want of memory: its count of such kills did not rise"
                : "muster did not send it; if memory was full, the kernel did: see dmesg on that node";
        if (limits_processor_time()) fault.advice += "; the kernel also sends it at the limit of processor time: see ulimit -t";
    }
    return fault;
}

bool may_be_sent_to_all(int wait_status) noexcept {
    if (!WIFSIGNALED(wait_status)) return false;
    int const number = WTERMSIG(wait_status);
    return number == SIGTERM || number == SIGKILL || number == SIGALRM || number == SIGHUP;
}

}  // namespace muster
