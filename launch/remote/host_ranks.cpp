#include "launch/remote/host_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/cpuset.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace {

constexpr std::size_t most_numbers = 1u << 24;

struct run {
    int hosts = 1;
    int first = 0;
    int ranks = 0;
    int step = 1;
    int shift = 0;
};

/// Returns the series of equally spaced ranks that starts at `begin`.
run take_run(std::vector<int> const& ranks, std::size_t begin) {
    run one{.first = ranks[begin], .ranks = 1};
    if (begin + 1 < ranks.size() && ranks[begin + 1] > ranks[begin]) one.step = ranks[begin + 1] - ranks[begin];
    while (begin + static_cast<std::size_t>(one.ranks) < ranks.size() &&
           ranks[begin + static_cast<std::size_t>(one.ranks)] ==
               static_cast<std::int64_t>(one.first) + static_cast<std::int64_t>(one.ranks) * one.step)
        ++one.ranks;
    if (one.ranks == 1) one.step = 1;
    return one;
}

/// Adds the host `next`, itself a run, to `whole`, whose last host it follows; returns false if it does not continue it.
bool joins(run& whole, run const& next) {
    if (whole.hosts == 0 || whole.ranks != next.ranks || whole.step != next.step) return false;
    auto const shift = next.first - (whole.first + (whole.hosts - 1) * whole.shift);
    if (whole.hosts > 1 && shift != whole.shift) return false;
    whole.shift = shift;
    ++whole.hosts;
    return true;
}

[[noreturn]] void refuse_runs(std::string_view why) {
    throw_error(errc::invalid_data, "not the ranks of a run's hosts: {}", why);
}

}  // namespace

std::string to_lines(std::vector<host_ranks> const& hosts) {
    std::string text;
    for (auto const& host : hosts)
        text += fmt::format("{} {}{}{}\n", host.name, cpuset{host.ranks}.to_list(), host.here ? " here" : "",
                            host.spare ? " spare" : "");
    return text;
}

std::vector<host_ranks> parse_host_ranks(std::string_view text, std::string_view origin) {
    std::vector<host_ranks> hosts;
    for (auto const line : split(text, '\n')) {
        if (trim(line).empty()) continue;
        auto words = split(trim(line), ' ');
        auto const ends_with = [&](std::string_view word) {
            bool const does = words.size() > 2 && words.back() == word;
            if (does) words.pop_back();
            return does;
        };
        bool const spare = ends_with("spare"), here = ends_with("here");
        if (words.size() != 2)
            throw_error(errc::parse, "{}: \"{}\" is no line of a host and its ranks, as in: node1 0-3", origin, line);
        hosts.push_back({std::string(words[0]), parse_numbers(words[1], origin), here, spare});
    }
    return hosts;
}

std::vector<int> parse_numbers(std::string_view list, std::string_view origin) {
    std::vector<int> numbers;
    for (auto const piece : split(list, ',')) {
        auto const dash = piece.find('-');
        auto const first = parse_integer(piece.substr(0, dash));
        auto const last = dash == std::string_view::npos ? first : parse_integer(piece.substr(dash + 1));
        if (!first || !last || *first < 0 || *last < *first || *last > INT32_MAX ||
            static_cast<std::size_t>(*last - *first) >= most_numbers - numbers.size())
            throw parse_error(origin, list, static_cast<std::size_t>(piece.data() - list.data()),
                              "expected numbers such as 0-3,8");
        for (auto number = *first; number <= *last; ++number) numbers.push_back(static_cast<int>(number));
    }
    std::ranges::sort(numbers);
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
}

std::vector<int> pack_ranks(std::vector<std::vector<int>> const& ranks_of_hosts) {
    std::vector<run> runs;
    for (auto const& ranks : ranks_of_hosts) {
        auto const first = ranks.empty() ? run{} : take_run(ranks, 0);
        bool const is_one = first.ranks == static_cast<int>(ranks.size());
        bool const joined = is_one && !runs.empty() && joins(runs.back(), first);
        if (!joined) runs.push_back(first);
        for (auto at = static_cast<std::size_t>(first.ranks); at < ranks.size();) {
            auto more = take_run(ranks, at);
            at += static_cast<std::size_t>(more.ranks);
            more.hosts = 0;
            runs.push_back(more);
        }
    }
    std::vector<int> numbers;
    for (auto const& one : runs) numbers.insert(numbers.end(), {one.hosts, one.first, one.ranks, one.step, one.shift});
    return numbers;
}

std::vector<std::vector<int>> unpack_ranks(std::vector<int> const& runs, std::size_t hosts, int world_size) {
    std::vector<std::vector<int>> all;
    std::size_t left = most_numbers;
    if (runs.size() % 5 != 0) refuse_runs("they are cut");
    for (std::size_t at = 0; at < runs.size(); at += 5) {
        run const one{runs[at], runs[at + 1], runs[at + 2], runs[at + 3], runs[at + 4]};
        if (one.hosts < 0 || one.ranks < 0 || one.step < 1 || (one.hosts == 0 && all.empty())) refuse_runs("no such run");
        if (static_cast<std::size_t>(one.hosts) > hosts - all.size()) refuse_runs("more hosts than there are");
        for (int host = 0; host < std::max(one.hosts, 1); ++host) {
            if (one.hosts > 0) all.emplace_back();
            auto rank = static_cast<std::int64_t>(one.first) + static_cast<std::int64_t>(host) * one.shift;
            if (static_cast<std::size_t>(one.ranks) > left) refuse_runs("more ranks than any run has");
            left -= static_cast<std::size_t>(one.ranks);
            for (int i = 0; i < one.ranks; ++i, rank += one.step) {
                if (rank < 0 || rank >= world_size) refuse_runs("a rank beyond the world");
                all.back().push_back(static_cast<int>(rank));
            }
        }
    }
    if (all.size() != hosts) refuse_runs("fewer hosts than there are");
    return all;
}

int count_ranks(std::vector<host_ranks> const& hosts) noexcept {
    int count = 0;
    for (auto const& host : hosts)
        for (int const rank : host.ranks) count = std::max(count, rank + 1);
    return count;
}

}  // namespace muster
