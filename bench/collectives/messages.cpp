#include "bench/collectives/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text_table.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

namespace {

constexpr double sample_us = 20e3;
constexpr std::size_t window_bytes = std::size_t{64} << 20;
constexpr int osu_window = 64;

std::string const& host_of(messages_results const& results, int rank) {
    return results.hosts[static_cast<std::size_t>(rank)];
}

}  // namespace

pair_size measure_messages(ordered_ranks& ranks, std::size_t bytes, int repeats) {
    pair_size size;
    size.bytes = bytes;
    size.window = static_cast<int>(std::clamp<std::size_t>(window_bytes / bytes, 1, osu_window));
    auto const timed = [&](int window, int rounds, bool both) {
        auto const told = ranks.ask(fmt::format("messages {} {} {} {}", bytes, window, rounds, both ? 1 : 0), order_deadline);
        size.wrong += told.second;
        return told.first;
    };
    auto const rounds_of = [](double us) { return static_cast<int>(std::clamp(sample_us / std::max(us, 0.1), 1.0, 2000.0)); };
    int const latency_rounds = rounds_of(2 * timed(0, 2, false)),
              window_rounds = rounds_of(size.window * timed(size.window, 1, true));
    for (int repeat = 0; repeat < repeats; ++repeat) {
        size.latency_us.push_back(timed(0, latency_rounds, false));
        size.one_way_us.push_back(timed(size.window, window_rounds, false));
        size.both_ways_us.push_back(timed(size.window, window_rounds, true));
    }
    return size;
}

std::string_view level_of(messages_results const& results) {
    return host_of(results, results.first) == host_of(results, results.second) ? "in node" : "between nodes";
}

std::optional<link_fit> fit_of(messages_results const& results) {
    std::vector<timed_size> sizes;
    for (auto const& size : results.sizes)
        if (!size.latency_us.empty()) sizes.push_back({static_cast<double>(size.bytes), median(size.latency_us)});
    return fit_link(sizes);
}

bool all_right(messages_results const& results) {
    return std::ranges::all_of(results.sizes, [](pair_size const& size) { return size.wrong == 0; });
}

std::string describe(messages_results const& results) {
    std::vector<std::vector<std::string>> rows{
        {"size", "latency us", "spread", "bandwidth MB/s", "spread", "both ways MB/s", "spread", "window", "#wrong"}};
    for (auto const& size : results.sizes) {
        std::vector<std::string> row{std::to_string(size.bytes)};
        auto const add = [&](std::vector<double> const& us, double messages) {
            auto const s = summarise(us);
            row.push_back(fmt::format("{:.2f}", messages > 0 ? messages * 1e3 * bandwidth_gbs(size.bytes, s.median) : s.median));
            row.push_back(spread_text(s));
        };
        add(size.latency_us, 0);
        add(size.one_way_us, 1);
        add(size.both_ways_us, 2);
        row.push_back(std::to_string(size.window));
        row.push_back(fmt::format("{:.0f}", size.wrong));
        rows.push_back(std::move(row));
    }
    auto text = fmt::format("messages between rank {} ({}) and rank {} ({}), {}, by sendrecv over {}\n{}", results.first,
                            host_of(results, results.first), results.second, host_of(results, results.second), level_of(results),
                            results.backend, align_columns(rows));
    if (auto const fit = fit_of(results))
        text += fmt::format(
            "{}: alpha {:.2f} us, beta {:.3f} ns/B ({:.2f} GB/s), fitted to the latencies of {} sizes (relative rms "
            "{:.0f}%)\n",
            level_of(results), fit->alpha_us, 1 / fit->gbs, fit->gbs, results.sizes.size(), 100 * fit->relative_rms);
    for (auto const& note : results.notes) text += note + "\n";
    return text;
}

std::string to_csv(messages_results const& results) {
    std::string text;
    for (auto const& size : results.sizes)
        for (auto const& [what, us, messages] : {std::tuple{"latency", &size.latency_us, 1.0},
                                                 {"bandwidth", &size.one_way_us, 1.0},
                                                 {"bidirectional bandwidth", &size.both_ways_us, 2.0}}) {
            auto const s = summarise(*us);
            csv_row row{what, "-", 2, host_count(results), results.backend, "u8", "none", size.bytes};
            row.least_us = s.smallest;
            row.mean_us = row.most_us = s.median;
            row.algbw_gbs = row.busbw_gbs = messages * bandwidth_gbs(size.bytes, s.median);
            row.wrong = size.wrong;
            text += csv_line(row);
        }
    return text;
}

nlohmann::ordered_json to_json(messages_results const& results) {
    auto sizes = nlohmann::ordered_json::array();
    for (auto const& size : results.sizes)
        sizes.push_back({{"bytes", size.bytes},
                         {"window", size.window},
                         {"latency_us", size.latency_us},
                         {"one_way_us", size.one_way_us},
                         {"both_ways_us", size.both_ways_us},
                         {"wrong", size.wrong}});
    auto out = head_json("muster.messages/1", results);
    out.update({{"backend", results.backend},
                {"version", results.version},
                {"ranks", {results.first, results.second}},
                {"level", level_of(results)},
                {"notes", results.notes},
                {"sizes", sizes},
                {"fitted", nullptr}});
    if (auto const fit = fit_of(results))
        out["fitted"] = {{"alpha_us", fit->alpha_us},
                         {"gbs", fit->gbs},
                         {"relative_rms", fit->relative_rms},
                         {"leave_one_out_errors", fit->left_out}};
    return out;
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
