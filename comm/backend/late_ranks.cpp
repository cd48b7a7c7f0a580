#include "comm/backend/late_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "comm/backend/comm_error.hpp"

namespace muster {

std::vector<late_rank> lost_ranks(std::span<process_name const> processes, int own) {
    std::vector<late_rank> lost;
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
        if (static_cast<int>(rank) == own) continue;
        auto const state = state_of(processes[rank]);
        if (is_lost(state))
            lost.push_back({static_cast<int>(rank), state == process_state::gone, describe(processes[rank], state)});
    }
    return lost;
}

std::string describe_late(std::span<late_rank const> late, std::span<std::string const> hosts) {
    std::string text;
    for (auto const& each : late)
        text += fmt::format("{}rank {} on {} ({})", text.empty() ? "" : ", ", each.rank,
                            hosts[static_cast<std::size_t>(each.rank)], each.why);
    return text;
}

std::vector<int> ranks_of(std::span<late_rank const> late) {
    std::vector<int> ranks;
    for (auto const& each : late) ranks.push_back(each.rank);
    return ranks;
}

void run_now(collective_backend& backend, collective const& what, comm_options const& options, std::string_view why) {
    using clock = std::chrono::steady_clock;
    constexpr duration between_checks{0.2};
    duration const deadline = options.deadline;
    ticket const which = backend.start(what);
    auto const begin = clock::now();
    duration next_check = between_checks;
    int lost_checks = 0;
    while (which != 0 && !backend.done(which)) {
        duration const waited = clock::now() - begin;
        if (options.loss && options.loss->is_told()) {
            backend.abandon(which);
            options.loss->throw_if_told(fmt::format("communicator: {}", why));
        }
        backend.give_way(waited > between_checks);
        bool const is_over = deadline.count() > 0 && waited >= deadline;
        if (!is_over && waited < next_check) continue;
        next_check = waited + between_checks;
        auto const late = backend.late_ranks(which);
        // A rank that is gone may have sent everything: its messages have until the next check to arrive.
        lost_checks += std::any_of(late.begin(), late.end(), [](late_rank const& each) { return each.dead; }) ? 1 : 0;
        if (!is_over && lost_checks < 2) continue;
        backend.abandon(which);
        std::string const fault = is_over ? fmt::format("timed out, {} did not finish within {}", why, format_duration(deadline))
                                          : fmt::format("{} {}", why, lost_rank_words);
        throw comm_error(is_over ? errc::timeout : errc::peer_failed,
                         fmt::format("communicator: {}{}{}", fault, late.empty() ? "" : "; waiting for ",
                                     describe_late(late, backend.hosts())),
                         ranks_of(late));
    }
}

}  // namespace muster

namespace muster::detail {

namespace {

constexpr std::size_t longest = 1024;

}  // namespace

std::string write_blame(std::vector<late_rank> const& late) {
    std::string text;
    for (auto const& each : late) {
        std::string const line = fmt::format("{} {}\n", each.rank, each.why);
        if (text.size() + line.size() > longest) break;
        text += line;
    }
    return text;
}

std::vector<late_rank> read_blame(std::string_view text, std::string_view sender, int size, std::string_view did) {
    std::vector<late_rank> late;
    while (!text.empty()) {
        auto const line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        late_rank next;
        auto const [end, fault] = std::from_chars(line.data(), line.data() + line.size(), next.rank);
        if (fault != std::errc{} || end == line.data() + line.size() || *end != ' ') continue;
        if (next.rank < 0 || next.rank >= size) continue;
        next.dead = true;
        next.why = fmt::format("{}; {} {}", line.substr(static_cast<std::size_t>(end + 1 - line.data())), sender, did);
        late.push_back(std::move(next));
    }
    std::stable_sort(late.begin(), late.end(), [](auto const& a, auto const& b) { return a.rank < b.rank; });
    return late;
}

}  // namespace muster::detail
