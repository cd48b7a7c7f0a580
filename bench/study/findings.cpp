#include "bench/study/findings.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <regex>

#include "base/cpuset.hpp"
#include "base/error.hpp"
#include "bench/study/scaling_table.hpp"

namespace muster {

namespace {

constexpr double worth_telling = 0.05;

/// Returns the largest row that has enough cores and a judged metric.
scaling_row const* largest(std::vector<scaling_row> const& rows, study_plan const& plan) {
    scaling_row const* found = nullptr;
    for (auto const& row : rows)
        if (!row.oversubscribed && row.find(plan.judged.name) != nullptr) found = &row;
    return found;
}

/// The time of which waiting is a part, in seconds, and its name.
struct judged_whole {
    std::string name;
    double seconds = 0;
};

/// Start-up does not count for a rate, which is of the program's steps; a time is itself.
judged_whole whole_of(study_plan const& plan, scaling_row const& row) {
    auto const of = [&](std::string const& name) { return judged_whole{name, row.median_of(name)}; };
    if (!plan.has_net() && !plan.judged.rate) return of(row.find(plan.judged.name) == nullptr ? "wall_s" : plan.judged.name);
    if (row.find("train_s") != nullptr) return of("train_s");
    if (row.find("compute_s") == nullptr) return of("wall_s");
    double const steps = row.median_of("compute_s") + row.median_of("loader_wait_s") + row.median_of("allreduce_wait_s");
    return {fmt::format("the steps ({} s)", format_value(steps)), steps};
}

std::string host_of(study const& results, int ranks, int rank) {
    for (auto const& point : results.points)
        if (point.ranks == ranks)
            for (auto const& place : point.places)
                if (place.rank == rank) return place.host;
    return {};
}

void add_oversubscribed(std::vector<scaling_row> const& rows, std::vector<scaling_finding>& all) {
    auto const first = std::ranges::find_if(rows, &scaling_row::oversubscribed);
    if (first == rows.end()) return;
    double const each = static_cast<double>(first->ranks) / std::max(first->cores, 1);
    all.push_back(
        {cause::oversubscribed,
         first->ranks,
         each,
         each,
         each,
         fmt::format("from {} on ranks share cores ({} on {} of them)", ranks_text(first->ranks), first->ranks, first->cores),
         "judge by fewer ranks, or use more nodes",
         {{"cores", first->cores}}});
}

std::optional<cpuset> cpus_of(placed_rank const& place) {
    try {
        auto const cpus = cpuset::from_list(place.cpus);
        if (!cpus.empty()) return cpus;
    } catch (error const&) {  // words instead of numbers: not bound
    }
    return {};
}

/// Adds the first two ranks of a point with enough cores that are bound to the same one.
void add_shared_core(study const& results, std::vector<scaling_finding>& all) {
    for (auto const& point : results.points) {
        if (point.oversubscribed) continue;
        std::map<std::string, std::vector<std::pair<int, cpuset>>> on_host;
        for (auto const& place : point.places) {
            auto const cpus = cpus_of(place);
            if (!cpus) continue;
            for (auto const& [rank, others] : on_host[place.host])
                if (auto const both = intersect(others, *cpus); !both.empty()) {
                    all.push_back({cause::shared_core,
                                   point.ranks,
                                   2,
                                   2,
                                   2,
                                   fmt::format("of {}, ranks {} and {} on {} share core {}", ranks_text(point.ranks), rank,
                                               place.rank, place.host, both.to_list()),
                                   "bind each rank to its own cores: leave --bind-to and --cpu-map to muster",
                                   {{"first_rank", rank}, {"second_rank", place.rank}}});
                    return;
                }
            on_host[place.host].emplace_back(place.rank, *cpus);
        }
    }
}

void add_waiting(cause why, std::string_view metric, std::string_view what, std::string advice, study const& results,
                 scaling_row const& row, std::vector<scaling_finding>& all) {
    auto const* waited = row.find(metric);
    auto const [name, whole] = whole_of(results.plan, row);
    if (waited == nullptr || !(whole > 0)) return;
    double const part = waited->value.median / whole;
    if (part < worth_telling) return;
    all.push_back({why,
                   row.ranks,
                   part,
                   waited->value.spread.low / whole,
                   waited->value.spread.high / whole,
                   fmt::format("at {}, {} of {} is {} ({} {} s)", ranks_text(row.ranks), percent_text(part), name, what, metric,
                               format_value(waited->value.median)),
                   std::move(advice),
                   {{std::string(metric), waited->value.median}, {"whole_s", whole}}});
}

/// The slowest rank, and by how much it exceeds the mean; nothing if fewer than two ranks printed the metric.
struct slowest {
    int rank = -1;
    double excess = 0;  ///< as a part of the mean
    double value = 0, mean = 0;
};
std::optional<slowest> slowest_of(study_run const& run, std::string_view metric) {
    slowest found;
    double sum = 0;
    int count = 0;
    for (auto const& series : run.metrics)
        if (series.name == metric && series.rank >= 0) {
            double const value = series.values.back();
            if (count++ == 0 || value > found.value) found.rank = series.rank, found.value = value;
            sum += value;
        }
    if (count < 2 || !(sum > 0)) return {};
    found.mean = sum / count;
    found.excess = found.value / found.mean - 1;
    return found;
}

/// Returns the rank that the remarks of most runs name, with the median of its shares and the last reason.
std::optional<remarked_rank> remarked_in_most(study const& results, int ranks) {
    std::map<int, std::vector<double>> shares;
    std::map<int, remarked_rank> last;
    std::size_t runs = 0;
    for (auto const& run : results.runs) {
        if (run.ranks != ranks || !run.counts()) continue;
        ++runs;
        if (!run.remarked) continue;
        auto one = *run.remarked;
        shares[one.rank].push_back(one.kept_waiting);
        if (one.reason.empty()) one.reason = last[one.rank].reason;
        last[one.rank] = std::move(one);
    }
    for (auto& [rank, one] : last)
        if (2 * shares[rank].size() > runs) {
            one.kept_waiting = median(shares[rank]);
            return one;
        }
    return {};
}

/// Adds the rank for which the others waited in most runs or, where that is not known, the one that was the slowest in most.
void add_imbalance(study const& results, scaling_row const& row, std::vector<scaling_finding>& all) {
    auto const remarked = remarked_in_most(results, row.ranks);
    auto const reason = remarked && !remarked->reason.empty() ? ": " + remarked->reason : std::string();
    if (remarked && remarked->kept_waiting >= worth_telling) {
        double const share = remarked->kept_waiting;
        all.push_back({cause::imbalance,
                       row.ranks,
                       share,
                       share,
                       share,
                       fmt::format("at {}, rank {} ({}) kept the others waiting {} of the time{}", ranks_text(row.ranks),
                                   remarked->rank, remarked->host, percent_text(share), reason),
                       reason.empty() ? "look at its input, and at what else runs on its cores"
                                      : fmt::format("mend that, or leave {} out", remarked->host),
                       {{"rank", remarked->rank}, {"kept_waiting", share}}});
        return;
    }
    std::map<int, std::vector<slowest>> by_rank;
    std::size_t runs = 0;
    for (auto const& run : results.runs)
        if (run.ranks == row.ranks && run.counts())
            if (auto const found = slowest_of(run, "compute_s")) {
                by_rank[found->rank].push_back(*found);
                ++runs;
            }
    auto const most = std::ranges::max_element(by_rank, {}, [](auto const& each) { return each.second.size(); });
    if (most == by_rank.end() || 2 * most->second.size() <= runs) return;  // no rank is the slowest in most runs
    std::vector<double> excess, values, means;
    for (auto const& each : most->second) {
        excess.push_back(each.excess);
        values.push_back(each.value);
        means.push_back(each.mean);
    }
    auto const s = summarise(excess);
    if (s.median < worth_telling) return;
    auto const host = host_of(results, row.ranks, most->first);
    all.push_back({cause::imbalance,
                   row.ranks,
                   s.median,
                   s.spread.low,
                   s.spread.high,
                   fmt::format("at {}, rank {}{} computes {} longer than the mean of the ranks (compute_s {}, mean {}){}",
                               ranks_text(row.ranks), most->first, host.empty() ? "" : fmt::format(" ({})", host),
                               percent_text(s.median), format_value(median(values)), format_value(median(means)),
                               remarked && remarked->rank == most->first ? reason : ""),
                   "look at what else runs on its cores, and at its GPU's clock: muster run --preflight",
                   {{"rank", most->first}, {"compute_s", median(values)}, {"mean_compute_s", median(means)}}});
}

/// Returns (n, speed-up) of each repetition that has the base.
std::map<int, std::vector<std::pair<double, double>>> speedups_by_repetition(study const& results,
                                                                             std::vector<scaling_row> const& rows, int base) {
    std::map<int, std::map<int, double>> values;
    for (auto const& run : results.runs) {
        auto const row = std::ranges::find(rows, run.ranks, &scaling_row::ranks);
        auto const value = value_of(run, results.plan.judged.name, results.plan);
        if (run.counts() && value && *value > 0 && row != rows.end() && !row->oversubscribed)
            values[run.repetition][run.ranks] = *value;
    }
    std::map<int, std::vector<std::pair<double, double>>> out;
    for (auto const& [repetition, by_ranks] : values) {
        auto const first = by_ranks.find(base);
        if (first == by_ranks.end()) continue;
        for (auto const& [ranks, value] : by_ranks) {
            double const n = static_cast<double>(ranks) / base;
            double const work = results.plan.series == work_series::weak && !results.plan.judged.rate ? n : 1;
            out[repetition].emplace_back(n, results.plan.judged.rate ? value / first->second : work * first->second / value);
        }
    }
    return out;
}

void add_serial_part(study const& results, std::vector<scaling_row> const& rows, scaling_row const& top,
                     std::vector<scaling_finding>& all) {
    auto const& plan = results.plan;
    auto const* base = base_row(rows, plan);
    bool const weak = plan.series == work_series::weak;
    // If a program divides its work by itself, a time says nothing without knowing the work.
    if (base == nullptr || base == &top || (plan.series == work_series::as_given && !plan.has_net() && !plan.judged.rate)) return;
    std::vector<double> parts;
    for (auto const& [repetition, speedups] : speedups_by_repetition(results, rows, base->ranks))
        if (speedups.size() > 1) parts.push_back(weak ? gustafson_part(speedups) : amdahl_part(speedups));
    if (parts.empty()) return;
    auto const s = summarise(parts);
    if (s.median < worth_telling || s.spread.low <= 0 || (top.speedup && top.speedup->within_spread)) return;
    bool const none_gain = s.spread.low >= 1;
    if (!none_gain && s.spread.high > 1) return;  // no part of the time is more than all of it
    bool const has_spread = s.count > 1;
    auto const spread =
        has_spread ? fmt::format(" ({} to {})", percent_text(s.spread.low), percent_text(s.spread.high)) : std::string();
    auto const ends = has_spread ? fmt::format(" ({:.1f} to {:.1f})", 1 / s.spread.high, 1 / s.spread.low) : std::string();
    std::string const top_ranks = ranks_text(top.ranks), part = percent_text(s.median) + spread;
    auto const text =
        none_gain ? fmt::format("up to {}, more ranks are no faster than {}", top_ranks, ranks_text(base->ranks))
        : weak    ? fmt::format("{} of the time does not serve more work with more ranks (Gustafson), up to {}", part, top_ranks)
                  : fmt::format(
                        "{} of the time does not shrink with more ranks (Amdahl), up to {}: no number of ranks would "
                           "be more than {:.1f}{} times as fast",
                        part, top_ranks, 1 / s.median, ends);
    all.push_back({cause::serial_part,
                   top.ranks,
                   s.median,
                   s.spread.low,
                   s.spread.high,
                   text,
                   weak          ? "look at start-up, input and communication"
                   : all.empty() ? "give each rank more work a step"
                                 : "give each rank more work a step, or look at the other causes",
                   {{"base_ranks", base->ranks},
                    {"limit", 1 / s.median},
                    {"limit_low", 1 / s.spread.high},
                    {"limit_high", 1 / s.spread.low}}});
}

}  // namespace

std::string percent_text(double part) {
    return fmt::format("{:.{}f}%", 100 * part, part < 0.1 ? 1 : 0);
}

std::string_view to_string(cause why) noexcept {
    constexpr std::string_view names[]{"oversubscribed", "shared core", "communication", "input", "imbalance", "serial part"};
    return names[static_cast<std::size_t>(why)];
}

double amdahl_part(std::vector<std::pair<double, double>> const& speedups) noexcept {
    double above = 0, below = 0;
    for (auto const& [n, s] : speedups) {
        if (n <= 1 || s <= 0) continue;
        double const x = 1 - 1 / n;
        above += (1 / s - 1 / n) * x;
        below += x * x;
    }
    return below > 0 ? above / below : 0;
}

double gustafson_part(std::vector<std::pair<double, double>> const& speedups) noexcept {
    double above = 0, below = 0;
    for (auto const& [n, s] : speedups) {
        if (n <= 1) continue;
        above += (n - s) * (n - 1);
        below += (n - 1) * (n - 1);
    }
    return below > 0 ? above / below : 0;
}

std::optional<remarked_rank> read_remark(std::string_view output) {
    static std::regex const remark(
        "^muster: note: rank ([0-9]{1,9}) on ([^ :]+)(?: kept the others waiting ([0-9]{1,3}) % of the time)?(?:: (.+))?$");
    for (auto const line : split(output, '\n')) {
        std::match_results<std::string_view::const_iterator> found;
        if (!line.starts_with("muster: note: rank ") || !std::regex_match(line.begin(), line.end(), found, remark)) continue;
        double const share = found[3].matched ? std::stoi(found[3].str()) / 100.0 : 0.0;
        return remarked_rank{std::stoi(found[1].str()), found[2].str(), share, found[4].str()};
    }
    return {};
}

std::vector<scaling_finding> find_causes(study const& results) {
    auto const rows = scaling_rows(results);
    std::vector<scaling_finding> all;
    add_oversubscribed(rows, all);
    add_shared_core(results, all);
    auto const* top = largest(rows, results.plan);
    if (top == nullptr) return all;
    std::vector<scaling_finding> parts;
    add_waiting(cause::communication, "allreduce_wait_s", "waiting for gradients, of slower ranks too",
                "give more work a rank and step (a larger batch), larger buckets, or bf16 on the wire", results, *top, parts);
    add_waiting(cause::input, "loader_wait_s", "waiting for the next batch",
                "bring the data nearer (muster stage copy to /dev/shm), or give the loader more workers", results, *top, parts);
    add_imbalance(results, *top, parts);
    std::ranges::stable_sort(parts, std::greater<>(), &scaling_finding::figure);
    all.insert(all.end(), parts.begin(), parts.end());
    add_serial_part(results, rows, *top, all);
    return all;
}

std::string findings_text(std::vector<scaling_finding> const& all) {
    std::string text;
    for (auto const& each : all)
        text += fmt::format("what limits it ({}): {}; {}\n", to_string(each.why), each.text, each.advice);
    return text;
}

}  // namespace muster
