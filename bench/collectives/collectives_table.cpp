#include "bench/collectives/collectives_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.hpp"
#include "base/text_table.hpp"
#include "base/units.hpp"

namespace muster {

namespace {

/// Where caches hold all, the memory's bandwidth bounds nothing.
constexpr std::size_t bound_from_bytes = std::size_t{16} << 20;

std::string median_text(std::vector<double> const& samples) {
    return samples.empty() ? "-" : fmt::format("{:.2f}", median(samples));
}

void add_columns(std::vector<std::string>& row, place_samples const& of, std::size_t bytes, double factor) {
    if (of.us.empty()) {
        row.insert(row.end(), {"-", "-", "-", "-", "-", "-", "-"});
        return;
    }
    auto const s = summarise(of.us);
    double const algbw = bandwidth_gbs(bytes, s.median);
    row.insert(row.end(), {median_text(of.min_us), median_text(of.avg_us), fmt::format("{:.2f}", s.median), spread_text(s),
                           fmt::format("{:.2f}", algbw), fmt::format("{:.2f}", algbw * factor), fmt::format("{:.0f}", of.wrong)});
}

std::vector<double> const& samples_of(collectives_cell const& cell) {
    return cell.out.us.empty() ? cell.in.us : cell.out.us;
}

/// nccl-tests' last line, for each job: the mean of all sizes' bus bandwidths, in and out of place.
std::string average_line(collectives_results const& results) {
    std::string text;
    for (auto const& job : results.jobs) {
        double sum = 0;
        int count = 0;
        for (auto const& cell : results.cells)
            for (auto const* samples : {&cell.out.us, &cell.in.us})
                if (cell.job == job.name && !samples->empty()) {
                    sum += bandwidth_gbs(cell.bytes, median(*samples)) * bus_factor(results.of.what, results.ranks);
                    ++count;
                }
        if (count > 0) text += fmt::format("{}{} {:.3f}", text.empty() ? "average busbw GB/s: " : ", ", job.name, sum / count);
    }
    return text.empty() ? text : text + "\n";
}

collectives_job_facts facts_of(collectives_results const& results, std::string const& job) {
    for (auto const& each : results.jobs)
        if (each.name == job) return each;
    return {};
}

}  // namespace

std::size_t host_count(measured_place const& at) {
    return std::set(at.hosts.begin(), at.hosts.end()).size();
}

double bandwidth_gbs(std::size_t bytes, double us) {
    return us > 0 ? static_cast<double>(bytes) / us / 1e3 : 0;
}

std::string spread_text(summary const& of) {
    return fmt::format("{:.0f}%", (of.largest - of.smallest) / of.median * 100);
}

double bound_us(collective::kind what, std::size_t bytes, int ranks, double triad_gbs) noexcept {
    return static_cast<double>(bytes) * bound_factor(what, ranks) / triad_gbs / 1e3;
}

std::vector<comparison> compare_with_peers(collectives_results const& results, std::string const& own) {
    std::vector<comparison> all;
    bool const device = facts_of(results, own).on_device();
    for (auto const& cell : results.cells) {
        if (cell.job != own || samples_of(cell).empty()) continue;
        comparison next{cell.bytes, median(samples_of(cell)), 0, ""};
        for (auto const& peer : results.cells) {
            auto const facts = facts_of(results, peer.job);
            if (peer.bytes != cell.bytes || facts.own || facts.on_device() != device || samples_of(peer).empty()) continue;
            double const us = median(samples_of(peer));
            if (!next.best.empty() && us >= next.best_us) continue;
            next.best = peer.job;
            next.best_us = us;
            next.advantage = ratio_of(summarise(samples_of(peer)), summarise(samples_of(cell)));
        }
        if (!next.best.empty()) all.push_back(next);
    }
    return all;
}

double mean_advantage(std::vector<comparison> const& all) {
    if (all.empty()) return 0;
    double sum = 0;
    for (auto const& each : all)
        if (!each.advantage.within_spread()) sum += std::log(each.best_us / each.own_us);
    return std::exp(sum / static_cast<double>(all.size()));
}

bool all_right(collectives_results const& results) {
    return std::ranges::all_of(results.cells, [](auto const& cell) { return cell.out.wrong == 0 && cell.in.wrong == 0; });
}

std::string describe(collectives_results const& results) {
    auto const& of = results.of;
    std::string text =
        fmt::format("{}, {} on {}, {} ({}), load {:.1f}; medians, interleaved\n", to_string(of.what),
                    counted(results.ranks, "rank"), counted(static_cast<std::int64_t>(host_count(results)), "host"),
                    counted(results.machine.cores, "core"), results.machine.processor, results.load);
    for (auto const& job : results.jobs)
        text += fmt::format("  {:13} {}{}\n", job.name, job.version, job.simulated ? " (simulated)" : "");
    for (auto const& note : results.notes) text += fmt::format("  {}\n", note);
    if (results.triad_gbs > 0)
        text += fmt::format(
            "memory, all ranks at once: memcpy {:.1f} GB/s copied, triad {:.1f} GB/s; bound of {} {} of S bytes: {} / triad\n",
            results.memcpy_gbs, results.triad_gbs, to_string(of.what).front() == 'a' ? "an" : "a", to_string(of.what),
            bound_formula(of.what));
    if (!results.gradients.empty()) text += results.gradients + "\n";
    std::vector<std::vector<std::string>> rows{{"size",   "count",  "type",   "redop", "root",  "by",     "min us",
                                                "avg us", "max us", "spread", "algbw", "busbw", "#wrong", "in place min",
                                                "avg",    "max",    "spread", "algbw", "busbw", "#wrong", "of bound"}};
    double const factor = bus_factor(of.what, results.ranks);
    for (auto const& cell : results.cells) {
        std::vector<std::string> row{std::to_string(cell.bytes),
                                     std::to_string(count_of(of, cell.bytes, results.ranks)),
                                     std::string(to_string(of.type)),
                                     redop_of(of),
                                     root_of(of),
                                     cell.job};
        for (auto const* place : {&cell.out, &cell.in}) add_columns(row, *place, cell.bytes, factor);
        if (results.triad_gbs > 0 && cell.bytes >= bound_from_bytes && !facts_of(results, cell.job).on_device() &&
            !samples_of(cell).empty())
            row.push_back(fmt::format(
                "{:.0f}%", bound_us(of.what, cell.bytes, results.ranks, results.triad_gbs) / median(samples_of(cell)) * 100));
        rows.push_back(row);
    }
    text += align_columns(rows) + average_line(results);
    auto const busy = results.load < 0.5 * results.machine.cores
                          ? std::string()
                          : fmt::format(", at a load of {:.1f} that makes this ratio uncertain", results.load);
    for (auto const& job : results.jobs) {
        if (!job.own) continue;
        auto const all = compare_with_peers(results, job.name);
        if (all.empty()) continue;
        auto const worst = *std::min_element(
            all.begin(), all.end(), [](auto const& a, auto const& b) { return a.best_us / a.own_us < b.best_us / b.own_us; });
        auto const unclear = std::ranges::count_if(all, [](auto const& each) { return each.advantage.within_spread(); });
        text += fmt::format(
            "{}: {:.2f} times as fast as the best peer of each size{} (geometric mean; {} of {} sizes are within the "
            "spread, and count as 1); least {}, at {}, against {}\n",
            job.name, mean_advantage(all), busy, unclear, all.size(),
            worst.advantage.within_spread() ? "1, within the spread" : format_ratio(worst.advantage) + " times",
            format_bytes(worst.bytes), worst.best);
    }
    return text;
}

std::string csv_head() {
    return "what,place,ranks,hosts,backend,type,redop,bytes,min_us,avg_us,max_us,algbw_gbs,busbw_gbs,wrong\n";
}

std::string csv_line(csv_row const& row) {
    auto const known = [](std::optional<double> us) { return us ? fmt::format("{:.4f}", *us) : ""; };
    return fmt::format("{},{},{},{},{},{},{},{},{},{},{:.4f},{:.4f},{:.4f},{:.0f}\n", row.what, row.place, row.ranks, row.hosts,
                       row.backend, row.type, row.redop, row.bytes, known(row.least_us), known(row.mean_us), row.most_us,
                       row.algbw_gbs, row.busbw_gbs, row.wrong);
}

std::string to_csv(collectives_results const& results) {
    std::string text;
    double const factor = bus_factor(results.of.what, results.ranks);
    auto const known = [](std::vector<double> const& samples) {
        return samples.empty() ? std::optional<double>() : median(samples);
    };
    for (auto const& cell : results.cells) {
        auto const line = [&](char const* place, place_samples const& of) {
            if (of.us.empty()) return;
            double const us = median(of.us), algbw = bandwidth_gbs(cell.bytes, us);
            text += csv_line({std::string(to_string(results.of.what)), place, results.ranks, host_count(results), cell.job,
                              std::string(to_string(results.of.type)), redop_of(results.of), cell.bytes, known(of.min_us),
                              known(of.avg_us), us, algbw, algbw * factor, of.wrong});
        };
        line("out", cell.out);
        line("in", cell.in);
    }
    return text;
}

nlohmann::ordered_json head_json(std::string_view schema, measured_place const& at) {
    auto const& machine = at.machine;
    return {{"schema", schema},
            {"created", at.created},
            {"command", at.command},
            {"context",
             {{"host", machine.host},
              {"processor", machine.processor},
              {"cores", machine.cores},
              {"kernel", machine.kernel},
              {"compiler", machine.compiler},
              {"load", at.load}}},
            {"hosts", at.hosts}};
}

nlohmann::ordered_json to_json(collectives_results const& results) {
    using json = nlohmann::ordered_json;
    json jobs = json::array(), cells = json::array();
    for (auto const& job : results.jobs)
        jobs.push_back({{"name", job.name},
                        {"version", job.version},
                        {"own", job.own},
                        {"device", job.on_device()},
                        {"memory", to_string(job.memory)},
                        {"simulated", job.simulated}});
    for (auto const& cell : results.cells)
        cells.push_back({{"by", cell.job},
                         {"bytes", cell.bytes},
                         {"count", count_of(results.of, cell.bytes, results.ranks)},
                         {"tensors", cell.tensors},
                         {"type", to_string(results.of.type)},
                         {"redop", redop_of(results.of)},
                         {"calls", cell.calls},
                         {"out_of_place_us", cell.out.us},
                         {"in_place_us", cell.in.us},
                         {"out_of_place_min_us", cell.out.min_us},
                         {"out_of_place_avg_us", cell.out.avg_us},
                         {"in_place_min_us", cell.in.min_us},
                         {"in_place_avg_us", cell.in.avg_us},
                         {"wrong_out_of_place", cell.out.wrong},
                         {"wrong_in_place", cell.in.wrong}});
    auto out = head_json("muster.collectives/1", results);
    out.update({{"collective", to_string(results.of.what)},
                {"type", to_string(results.of.type)},
                {"redop", redop_of(results.of)},
                {"root", results.of.what == collective::kind::broadcast ? results.of.root : -1},
                {"bus_factor", bus_factor(results.of.what, results.ranks)},
                {"bound_factor", bound_factor(results.of.what, results.ranks)},
                {"ranks", results.ranks},
                {"gradients", results.gradients},
                {"simulated", std::any_of(results.jobs.begin(), results.jobs.end(), [](auto const& j) { return j.simulated; })},
                {"notes", results.notes},
                {"memcpy_gbs", results.memcpy_gbs},
                {"triad_gbs", results.triad_gbs},
                {"jobs", jobs},
                {"cells", cells}});
    return out;
}

}  // namespace muster
