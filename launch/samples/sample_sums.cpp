#include "launch/samples/sample_sums.hpp"

#include <algorithm>
#include <utility>

namespace muster {

void sample_sums::gpu_sums::note(gpu_sample const& look) {
    auto sums = std::exchange(last, look);
    last.most_used_bytes = std::max(look.used_bytes, sums.most_used_bytes);
    last.was_slowed = sums.was_slowed;
    auto const since_first = [](std::optional<std::int64_t>& now, std::optional<std::int64_t>& first) {
        if (now && !first) first = now;
        if (now) now = std::max<std::int64_t>(*now - *first, 0);
    };
    since_first(last.ecc_errors, first_ecc_errors);
    since_first(last.link_replays, first_link_replays);
    if (look.busy_percent) busy_percent.add(std::clamp(*look.busy_percent, 0, 100));
    if (look.busy_percent.value_or(0) > 0) {
        if (look.clock_mhz.value_or(0) > 0) clock_mhz.add(*look.clock_mhz);
        slowed.add(look.slowed.empty() ? 0 : 1);
        if (!look.slowed.empty()) last.was_slowed = look.slowed;
    }
    last.mean_busy_percent = busy_percent.rounded();
    last.mean_clock_mhz = clock_mhz.rounded();
    last.slowed_share = slowed.value();
}

void sample_sums::note(std::string const& host, node_sample const& look, double at_s) {
    auto& node = nodes_[host];
    if (look.cpus || look.load) node.last = look;
    node.last.host = host;
    if (look.cpus || look.load || !look.ranks.empty()) node.at_s = at_s;  // GPUs are looked at apart
    node.last.gpus.clear();
    node.last.ranks.clear();
    if (!look.gpus.empty()) node.gpus.resize(look.gpus.size());
    for (std::size_t i = 0; i < look.gpus.size(); ++i) {
        if (node.gpus[i].last.number != look.gpus[i].number) node.gpus[i] = {};
        node.gpus[i].note(look.gpus[i]);
    }
    for (auto const& rank : look.ranks) ranks_[rank.rank] = {host, rank};
}

namespace {

constexpr std::size_t most_named = 4;  ///< ranks in wait_sample::longest

/// Gives each rank what the others count of their waits for it. A program whose collectives mostly cannot tell who came last has waits of others from its start.
void add_waits_of_others(std::map<std::string, std::vector<rank_sample>>& there) {
    struct sum {
        double waited_s = 0;
        std::uint64_t times = 0;
    };
    std::map<int, sum> by_rank;
    std::uint64_t known = 0, all = 0;
    std::size_t ranks = 0;
    for (auto const& [host, here] : there)
        for (auto const& one : here) {
            ++ranks;
            if (!one.waits) continue;
            all += one.waits->collectives;
            for (auto const& last : one.waits->longest) {
                auto& to = by_rank[last.rank];
                to.waited_s += last.waited_s;
                to.times = std::max(to.times, last.times);
                known += last.times;
            }
        }
    if (known == 0 || 2 * known < all) return;
    bool const names_all = ranks <= most_named + 1;
    for (auto& [host, here] : there)
        for (auto& one : here) {
            auto const named = by_rank.find(one.rank);
            if (!one.waits || (named == by_rank.end() && !names_all)) continue;
            auto const own = named == by_rank.end() ? sum{} : named->second;
            one.waits->kept_waiting_s = own.waited_s;
            one.waits->came_last = own.times;
        }
}

}  // namespace

std::vector<node_sample> sample_sums::nodes(std::vector<present_rank> const& ranks) const {
    std::map<std::string, std::vector<rank_sample>> there;
    bool const renumbered = std::ranges::any_of(ranks, [](present_rank const& one) { return one.rank != one.at_start; });
    for (auto const& one : ranks)
        if (auto const known = ranks_.find(one.at_start); known != ranks_.end()) {
            auto& sample = there[known->second.host].emplace_back(known->second.last);
            sample.rank = one.rank;
            if (renumbered && sample.waits) sample.waits->longest.clear();  // they have former numbers
        }
    add_waits_of_others(there);
    std::vector<node_sample> all;
    for (auto const& [host, node] : nodes_) {
        auto now = node.last;
        now.at_s = node.at_s;
        for (auto const& gpu : node.gpus) now.gpus.push_back(gpu.last);
        now.ranks = std::move(there[host]);
        std::ranges::sort(now.ranks, {}, &rank_sample::rank);
        if (!now.ranks.empty()) all.push_back(std::move(now));
    }
    return all;
}

}  // namespace muster
