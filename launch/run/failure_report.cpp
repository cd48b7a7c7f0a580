#include "launch/run/failure_report.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/text.hpp"
#include "launch/system/exit_status.hpp"

namespace muster {

namespace {

std::string quote_lines(std::string_view text) {
    std::string quoted;
    for (auto const line : split(trim(text), '\n')) quoted += fmt::format("\n  | {}", line);
    return quoted;
}

}  // namespace

std::string describe(failure_report const& failure) {
    auto text = fmt::format("{} {}, {} after the start", failure.rank, failure.what, format_duration(failure.lived));
    if (failure.others > 0) text += fmt::format("; ending the other {}", failure.others);
    if (!failure.advice.empty()) text += "\n  " + failure.advice;
    if (!failure.last_lines.empty()) text += "\n  the last it wrote on stderr:" + quote_lines(failure.last_lines);
    return text;
}

std::optional<end_fault> find_end_fault(int wait_status) {
    if (wait_status == 0) return std::nullopt;
    bool const killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
    return end_fault{describe_end(wait_status), shell_code(wait_status),
                     killed ? "muster did not send it; often the kernel does, when memory runs out: see dmesg on that node" : ""};
}

}  // namespace muster
