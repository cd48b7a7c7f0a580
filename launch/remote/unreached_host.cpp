#include "launch/remote/unreached_host.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "launch/system/signals.hpp"

namespace muster {

namespace {

constexpr std::string_view mark = "muster: no probe on host ";

}  // namespace

std::string to_line(unreached_host const& host) {
    auto line = fmt::format("{}{}: {}", mark, host.number, host.why);
    std::ranges::replace(line, '\n', ' ');
    return line;
}

std::optional<unreached_host> parse_unreached_host(std::string_view line) {
    if (!line.starts_with(mark)) return std::nullopt;
    auto const rest = line.substr(mark.size());
    auto const colon = rest.find(": ");
    auto const number = parse_integer(rest.substr(0, colon));
    if (colon == std::string_view::npos || !number || *number < 0) return std::nullopt;
    return unreached_host{static_cast<std::size_t>(*number), std::string(rest.substr(colon + 2))};
}

std::string describe_call_end(int wait_status, std::string_view muster) {
    int const code = shell_code(wait_status);
    auto const what = describe_end(wait_status);
    return code == 126 || code == 127 ? fmt::format("{}; is muster at {} there?", what, muster) : what;
}

}  // namespace muster
