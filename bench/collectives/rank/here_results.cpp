#include "bench/collectives/rank/here_results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "base/text_table.hpp"
#include "bench/collectives/collectives_table.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

namespace {

double gigabytes_a_second(std::size_t bytes, double us) {
    return us > 0 ? static_cast<double>(bytes) / us / 1e3 : 0;
}

void add_place(std::vector<std::string>& row, std::vector<rank_times> const& samples, double wrong, std::size_t bytes,
               double factor) {
    if (samples.empty()) {
        row.insert(row.end(), 6, "-");
        return;
    }
    auto const t = medians(samples);
    double const algbw = gigabytes_a_second(bytes, t.most);
    row.insert(row.end(), {fmt::format("{:.2f}", t.least), fmt::format("{:.2f}", t.mean), fmt::format("{:.2f}", t.most),
                           fmt::format("{:.2f}", algbw), fmt::format("{:.2f}", algbw * factor), fmt::format("{:.0f}", wrong)});
}

std::string describe(here_table const& table, int ranks) {
    std::vector<std::vector<std::string>> rows{{"size", "count", "type", "redop", "root", "min us", "avg us", "max us", "algbw",
                                                "busbw", "#wrong", "in place min", "avg", "max", "algbw", "busbw", "#wrong"}};
    double const factor = bus_factor(table.of.what, ranks);
    for (auto const& size : table.sizes) {
        std::vector<std::string> row{std::to_string(size.bytes), std::to_string(count_of(table.of, size.bytes, ranks)),
                                     std::string(to_string(table.of.type)), redop_of(table.of), root_of(table.of)};
        add_place(row, size.out_of_place, size.wrong_out, size.bytes, factor);
        add_place(row, size.in_place, size.wrong_in, size.bytes, factor);
        rows.push_back(std::move(row));
    }
    return fmt::format("\n{}\n{}average busbw {:.3f} GB/s\n", to_string(table.of.what), align_columns(rows),
                       average_busbw(table, ranks));
}

std::string describe_pair(here_results const& results, pair_table const& pair) {
    auto const host = [&](int rank) { return results.hosts[static_cast<std::size_t>(rank)]; };
    std::vector<std::vector<std::string>> rows{
        {"size", "latency us", "spread", "bandwidth MB/s", "spread", "both ways MB/s", "spread", "window", "#wrong"}};
    for (auto const& size : pair.sizes) {
        std::vector<std::string> row{std::to_string(size.bytes)};
        auto const add = [&](std::vector<double> const& us, double messages) {
            if (us.empty()) return row.insert(row.end(), {"-", "-"}), void();
            auto const s = summarise(us);
            row.push_back(messages > 0 ? fmt::format("{:.2f}", messages * 1e3 * gigabytes_a_second(size.bytes, s.median))
                                       : fmt::format("{:.2f}", s.median));
            row.push_back(fmt::format("{:.0f}%", (s.largest - s.smallest) / s.median * 100));
        };
        add(size.latency_us, 0);
        add(size.one_way_us, 1);
        add(size.both_ways_us, 2);
        row.push_back(std::to_string(size.window));
        row.push_back(fmt::format("{:.0f}", size.wrong));
        rows.push_back(std::move(row));
    }
    auto text = fmt::format("\nmessages between rank {} ({}) and rank {} ({}), {}, by sendrecv\n{}", pair.first, host(pair.first),
                            pair.second, host(pair.second), level_of(results, pair), align_columns(rows));
    if (auto const fit = fit_of(pair))
        text += fmt::format(
            "{}: alpha {:.2f} us, beta {:.3f} ns/B ({:.2f} GB/s), fitted to the latencies of {} sizes (relative rms "
            "{:.0f}%)\n",
            level_of(results, pair), fit->alpha_us, 1 / fit->gbs, fit->gbs, pair.sizes.size(), 100 * fit->relative_rms);
    return text;
}

std::string quoted(std::string const& text) {
    return text.find_first_of(",\"\n") == std::string::npos ? text : '"' + text + '"';
}

nlohmann::ordered_json to_json(std::vector<rank_times> const& samples) {
    auto all = nlohmann::ordered_json::array();
    for (auto const& each : samples) all.push_back({{"min", each.least}, {"avg", each.mean}, {"max", each.most}});
    return all;
}

nlohmann::ordered_json pair_json(here_results const& results, pair_table const& pair) {
    auto sizes = nlohmann::ordered_json::array();
    for (auto const& size : pair.sizes)
        sizes.push_back({{"bytes", size.bytes},
                         {"window", size.window},
                         {"latency_us", size.latency_us},
                         {"one_way_us", size.one_way_us},
                         {"both_ways_us", size.both_ways_us},
                         {"wrong", size.wrong}});
    nlohmann::ordered_json out{
        {"ranks", {pair.first, pair.second}}, {"level", level_of(results, pair)}, {"sizes", sizes}, {"fitted", nullptr}};
    if (auto const fit = fit_of(pair))
        out["fitted"] = {{"alpha_us", fit->alpha_us},
                         {"gbs", fit->gbs},
                         {"relative_rms", fit->relative_rms},
                         {"leave_one_out_errors", fit->left_out}};
    return out;
}

}  // namespace

std::string_view level_of(here_results const& results, pair_table const& pair) {
    auto const host = [&](int rank) { return results.hosts[static_cast<std::size_t>(rank)]; };
    return host(pair.first) == host(pair.second) ? "in node" : "between nodes";
}

std::optional<link_fit> fit_of(pair_table const& pair) {
    std::vector<timed_size> sizes;
    for (auto const& size : pair.sizes)
        if (!size.latency_us.empty()) sizes.push_back({static_cast<double>(size.bytes), median(size.latency_us)});
    return fit_link(sizes);
}

rank_times over_ranks(std::span<double const> us) {
    expect(!us.empty(), "times of ranks");
    return {*std::ranges::min_element(us), std::accumulate(us.begin(), us.end(), 0.0) / static_cast<double>(us.size()),
            *std::ranges::max_element(us)};
}

rank_times medians(std::span<rank_times const> samples) {
    auto const of = [&](double rank_times::*which) {
        std::vector<double> values;
        for (auto const& each : samples) values.push_back(each.*which);
        return median(values);
    };
    return {of(&rank_times::least), of(&rank_times::mean), of(&rank_times::most)};
}

double average_busbw(here_table const& table, int ranks) {
    std::vector<double> all;
    for (auto const& size : table.sizes)
        for (auto const* place : {&size.out_of_place, &size.in_place})
            if (!place->empty())
                all.push_back(gigabytes_a_second(size.bytes, medians(*place).most) * bus_factor(table.of.what, ranks));
    return all.empty() ? 0 : std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

std::string describe(here_results const& results) {
    std::set<std::string> const hosts(results.hosts.begin(), results.hosts.end());
    std::string text =
        fmt::format("{} rank{} on {} host{}, {}, load {:.1f}; medians of samples\n{}\n", results.hosts.size(),
                    results.hosts.size() == 1 ? "" : "s", hosts.size(), hosts.size() == 1 ? "" : "s", results.machine.processor,
                    results.load, results.why_backend.substr(0, results.why_backend.find(';')));
    for (auto const& note : results.notes) text += note + "\n";
    for (auto const& table : results.tables) text += describe(table, static_cast<int>(results.hosts.size()));
    for (auto const& pair : results.pairs) text += describe_pair(results, pair);
    return text + busy_line(results.crowd);
}

std::string to_csv(here_results const& results) {
    int const ranks = static_cast<int>(results.hosts.size());
    std::string text = csv_head();
    std::set<std::string> const hosts(results.hosts.begin(), results.hosts.end());
    auto const line = [&](std::string_view what, std::string_view place, int of, std::string_view type, std::string_view redop,
                          std::size_t bytes, rank_times const& t, double messages, double factor, double wrong) {
        double const algbw = messages * gigabytes_a_second(bytes, t.most);
        text += fmt::format("{},{},{},{},{},{},{},{},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.0f}\n", what, place, of, hosts.size(),
                            quoted(results.backend), type, redop, bytes, t.least, t.mean, t.most, algbw, algbw * factor, wrong);
    };
    for (auto const& table : results.tables)
        for (auto const& size : table.sizes) {
            auto const place = [&](std::string_view name, std::vector<rank_times> const& samples, double wrong) {
                if (samples.empty()) return;
                line(to_string(table.of.what), name, ranks, to_string(table.of.type), redop_of(table.of), size.bytes,
                     medians(samples), 1, bus_factor(table.of.what, ranks), wrong);
            };
            place("out", size.out_of_place, size.wrong_out);
            place("in", size.in_place, size.wrong_in);
        }
    for (auto const& pair : results.pairs)
        for (auto const& size : pair.sizes) {
            auto const row = [&](std::string_view what, std::vector<double> const& us, double messages) {
                if (us.empty()) return;
                auto const s = summarise(us);
                line(what, "-", 2, "u8", "none", size.bytes, {s.smallest, s.median, s.median}, messages, 1, size.wrong);
            };
            row("latency", size.latency_us, 1);
            row("bandwidth", size.one_way_us, 1);
            row("bidirectional bandwidth", size.both_ways_us, 2);
        }
    return text;
}

nlohmann::ordered_json to_json(here_results const& results) {
    using json = nlohmann::ordered_json;
    int const ranks = static_cast<int>(results.hosts.size());
    json tables = json::array(), pairs = json::array();
    for (auto const& table : results.tables) {
        json sizes = json::array();
        for (auto const& size : table.sizes)
            sizes.push_back({{"bytes", size.bytes},
                             {"calls", size.calls},
                             {"out_of_place_us", to_json(size.out_of_place)},
                             {"in_place_us", to_json(size.in_place)},
                             {"wrong_out_of_place", size.wrong_out},
                             {"wrong_in_place", size.wrong_in}});
        tables.push_back({{"collective", to_string(table.of.what)},
                          {"type", to_string(table.of.type)},
                          {"redop", redop_of(table.of)},
                          {"root", table.of.what == collective::kind::broadcast ? table.of.root : -1},
                          {"bus_factor", bus_factor(table.of.what, ranks)},
                          {"average_busbw_gbs", average_busbw(table, ranks)},
                          {"sizes", sizes}});
    }
    for (auto const& pair : results.pairs) pairs.push_back(pair_json(results, pair));
    return {{"schema", "muster.collectives-here/1"},
            {"created", results.created},
            {"command", results.command},
            {"version", results.version},
            {"backend", results.backend},
            {"why_backend", results.why_backend},
            {"context", context_json(results.machine, results.load)},
            {"hosts", results.hosts},
            {"notes", results.notes},
            {"tables", tables},
            {"load", to_json(results.crowd)},
            {"pairs", pairs}};
}

bool all_right(here_results const& results) {
    return std::ranges::all_of(results.tables,
                               [](here_table const& table) {
                                   return std::ranges::all_of(table.sizes, [](here_size const& size) {
                                       return size.wrong_out == 0 && size.wrong_in == 0;
                                   });
                               }) &&
           std::ranges::all_of(results.pairs, [](pair_table const& pair) {
               return std::ranges::all_of(pair.sizes, [](pair_size const& size) { return size.wrong == 0; });
           });
}

namespace {

struct line {
    double alpha = 0, each_byte = 0;
};

/// Weights are 1 / us: relative errors count, so that small messages do.
std::optional<line> line_through(std::span<timed_size const> sizes, std::size_t left_out) {
    double one = 0, x = 0, xx = 0, y = 0, xy = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (i == left_out || !(sizes[i].us > 0)) continue;
        double const w = 1 / (sizes[i].us * sizes[i].us), b = sizes[i].bytes;
        one += w, x += w * b, xx += w * b * b, y += w * sizes[i].us, xy += w * b * sizes[i].us;
        ++count;
    }
    double const spread = one * xx - x * x;
    if (count < 2 || !(spread > 0)) return {};
    line out{(xx * y - x * xy) / spread, (one * xy - x * y) / spread};
    if (out.alpha < 0) out = {0, xy / xx};
    if (!(out.each_byte > 0)) return {};
    return out;
}

}  // namespace

std::optional<link_fit> fit_link(std::span<timed_size const> sizes) {
    auto const all = line_through(sizes, sizes.size());
    if (!all || sizes.size() < 3) return {};
    link_fit out{all->alpha, 1e-3 / all->each_byte, 0, {}};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        out.relative_rms += std::pow(out.us(sizes[i].bytes) / sizes[i].us - 1, 2);
        auto const others = line_through(sizes, i);
        if (others) out.left_out.push_back((others->alpha + others->each_byte * sizes[i].bytes) / sizes[i].us - 1);
    }
    out.relative_rms = std::sqrt(out.relative_rms / static_cast<double>(sizes.size()));
    return out;
}

}  // namespace muster
