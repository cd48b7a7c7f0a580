#include "launch/remote/host_ranks.hpp"

#include <fmt/format.h>

#include "base/cpuset.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

std::string to_lines(std::vector<host_ranks> const& hosts) {
    std::string text;
    for (auto const& host : hosts)
        text += fmt::format("{} {}{}\n", host.name, cpuset{host.ranks}.to_list(), host.here ? " here" : "");
    return text;
}

std::vector<host_ranks> parse_host_ranks(std::string_view text, std::string_view origin) {
    std::vector<host_ranks> hosts;
    for (auto const line : split(text, '\n')) {
        if (trim(line).empty()) continue;
        auto const words = split(trim(line), ' ');
        if (words.size() < 2 || words.size() > 3 || (words.size() == 3 && words[2] != "here"))
            throw error(errc::parse, fmt::format("{}: \"{}\" is no line of a host and its ranks, as in: node1 0-3", origin, line));
        hosts.push_back({std::string(words[0]), cpuset::from_list(words[1], origin).cpus, words.size() == 3});
    }
    return hosts;
}

int count_ranks(std::vector<host_ranks> const& hosts) noexcept {
    std::size_t count = 0;
    for (auto const& host : hosts) count += host.ranks.size();
    return static_cast<int>(count);
}

}  // namespace muster
