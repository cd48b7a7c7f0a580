#include "launch/observe/hang_command.hpp"

#include <fmt/format.h>

#include <chrono>

#include "base/process/run_captured.hpp"
#include "base/units.hpp"

namespace muster {

namespace {

constexpr std::string_view placeholder = "{pid}";
constexpr std::size_t longest_answer = 64u << 10;

}  // namespace

std::string ask_about(std::string const& command, long pid, environment const& variables, std::chrono::milliseconds limit) {
    auto filled = command;
    for (auto at = filled.find(placeholder); at != std::string::npos; at = filled.find(placeholder, at))
        filled.replace(at, placeholder.size(), std::to_string(pid));
    capture_options how;
    how.limit = limit;
    how.output_limit = longest_answer;  // what goes on printing is ended there
    auto const answer = run_program({"/bin/sh", "-c", "exec 2>&1\n" + filled}, variables, how);
    auto said = answer.out;
    bool const cut = said.size() > longest_answer;
    if (cut) said.resize(longest_answer);
    if (!said.empty() && said.back() != '\n') said += '\n';
    if (cut)
        said += fmt::format("--on-hang: ended after the first {} KiB\n", longest_answer >> 10);
    else if (answer.exit_status == 124)
        said += fmt::format("--on-hang: no end within {}\n", format_duration(duration(limit)));
    else if (answer.exit_status != 0)
        said += fmt::format("--on-hang: exit code {}\n", answer.exit_status);
    return said;
}

}  // namespace muster
