#include "comm/backend/processes/rank_processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_named = 8;

/// Returns what can be read of a file, which may vanish meanwhile, as those of processes do.
std::string read_file(fs::path const& path) {
    std::string text;
    unique_fd const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return text;
    std::array<char, 8192> part;
    for (ssize_t got = 0; (got = ::read(file.get(), part.data(), part.size())) > 0;)
        text.append(part.data(), static_cast<std::size_t>(got));
    return text;
}

environment environment_of(fs::path const& process) {
    std::string const text = read_file(process / "environ");
    environment variables;
    for (std::size_t at = 0; at < text.size();) {
        std::string_view const line(text.c_str() + at);
        at += line.size() + 1;
        if (auto const equals = line.find('='); equals != std::string_view::npos && equals != 0)
            variables.set(line.substr(0, equals), line.substr(equals + 1));
    }
    return variables;
}

std::optional<int> rank_in(environment const& variables, identity const& who) {
    try {
        identity const other = identify(variables, who.host);
        if (other.from == who.from && other.nspace == who.nspace && other.world_size == who.world_size) return other.rank;
    } catch (error const&) {  // its variables are not those of a rank
    }
    return std::nullopt;
}

std::optional<process_name> name_of(fs::path const& process) {
    std::string const file = process.filename().string();
    process_name name;
    auto const [end, fault] = std::from_chars(file.data(), file.data() + file.size(), name.pid);
    if (fault != std::errc{} || end != file.data() + file.size()) return std::nullopt;
    name.started = parse_stat(read_file(process / "stat")).started;
    name.machine = this_process().machine;
    return name;
}

std::string list_ranks(std::vector<int> const& ranks) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < ranks.size() && i < most_named; ++i) names.push_back(std::to_string(ranks[i]));
    if (ranks.size() > most_named) names.push_back(fmt::format("{} more", ranks.size() - most_named));
    return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", join(names, ", "));
}

}  // namespace

std::vector<seen_process> find_rank_processes(identity const& who) {
    std::vector<seen_process> found;
    std::error_code fault;
    fs::directory_iterator entries("/proc", fault);
    for (; !fault && entries != fs::directory_iterator(); entries.increment(fault)) {
        auto const& entry = *entries;
        auto const name = name_of(entry.path());
        if (!name) continue;
        if (auto const rank = rank_in(environment_of(entry.path()), who)) found.push_back({*rank, *name, state_of(*name)});
    }
    return found;
}

std::vector<seen_process> with_the_gone(std::vector<seen_process> const& first, std::vector<seen_process> now) {
    auto const same_rank = [](int rank) { return [rank](seen_process const& each) { return each.rank == rank; }; };
    for (auto const& each : first)
        if (std::none_of(now.begin(), now.end(), same_rank(each.rank)))
            now.push_back({each.rank, each.process, process_state::gone});
    return now;
}

absence explain_absence(identity const& who, std::vector<seen_process> const& found) {
    absence result;
    std::vector<std::string> lost;
    std::vector<bool> seen(static_cast<std::size_t>(who.world_size), false);
    auto const blame = [&](seen_process const& each) {
        lost.push_back(fmt::format("rank {} on {} ({})", each.rank, who.host, describe(each.process, each.state)));
        result.culprits.push_back(each.rank);
    };
    auto const in_world = [&](seen_process const& each) { return each.rank >= 0 && each.rank < who.world_size; };
    for (auto const& each : found) {
        if (!in_world(each)) continue;
        if (each.state != process_state::gone) seen[static_cast<std::size_t>(each.rank)] = true;
        if (each.state == process_state::stopped) blame(each);
    }
    // On several nodes, only ranks that are seen to be gone are at fault; on one node, all that have no process.
    if (lost.empty() && who.node_count > 1)
        for (auto const& each : found)
            if (in_world(each) && each.rank != who.rank && !seen[static_cast<std::size_t>(each.rank)]) blame(each);
    std::vector<int> absent;
    for (int rank = 0; rank < who.world_size; ++rank)
        if (!seen[static_cast<std::size_t>(rank)] && rank != who.rank) absent.push_back(rank);
    if (!lost.empty())
        result.text = fmt::format("waiting for {}", join(lost, ", "));
    else if (!absent.empty() && who.node_count <= 1) {
        result.culprits = absent;
        result.text = fmt::format("{} of {} {} no process on {}", list_ranks(absent), who.world_size,
                                  absent.size() == 1 ? "has" : "have", who.host);
    } else if (!absent.empty())
        result.text =
            fmt::format("all ranks of this node are there; of the other nodes ({}) nothing is known", list_ranks(absent));
    else
        result.text = "all ranks have a process; one of them has not come that far yet, or does not make a communicator";
    std::sort(result.culprits.begin(), result.culprits.end());
    result.culprits.erase(std::unique(result.culprits.begin(), result.culprits.end()), result.culprits.end());
    return result;
}

absence explain_absence(identity const& who, std::vector<seen_process> const& before, std::vector<seen_process> const& now) {
    absence const first = explain_absence(who, before);
    absence const second = explain_absence(who, now);
    // A rank that is missing only now has given up itself; one that was missing may have been ended by the launcher.
    return !first.culprits.empty() && second.culprits.empty() ? second : first;
}

}  // namespace muster

namespace muster::detail {

namespace {

std::atomic<unsigned> forks{0};

void count() noexcept {
    forks.fetch_add(1, std::memory_order_relaxed);
}

// Registered when the library starts, before any communicator is made.
[[maybe_unused]] int const registered = ::pthread_atfork(nullptr, nullptr, count);

}  // namespace

unsigned count_forks() noexcept {
    return forks.load(std::memory_order_relaxed);
}

}  // namespace muster::detail
