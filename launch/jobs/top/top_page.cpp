#include "launch/jobs/top/top_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "base/units.hpp"
#include "launch/jobs/top/cells.hpp"
#include "launch/samples/remarks/oddities.hpp"

namespace muster {

namespace {

std::string whole_seconds(double seconds) {
    return format_duration(duration(std::floor(std::max(seconds, 1.0))));
}

std::size_t count_ranks(run_samples const& samples) {
    std::size_t ranks = 0;
    for (auto const& node : samples.nodes) ranks += node.ranks.size();
    return ranks;
}

double newest_look(run_samples const& samples) {
    double newest = 0;
    for (auto const& node : samples.nodes) newest = std::max(newest, node.at_s);
    return newest;
}

bool is_overdue(run_samples const& samples, double age_s) {
    return age_s > std::max(10.0, 3 * samples.every_s);
}

// Cells; empty if the value is not known.

std::string percent_cell(std::optional<double> share) {
    return share ? fmt::format("{:.0f}%", std::clamp(*share, 0.0, 9.99) * 100) : "";
}
std::string bytes_cell(std::optional<double> bytes) {
    return bytes ? short_bytes(*bytes) : "";
}
std::string whole(double number) {
    return fmt::format("{:.0f}", number);
}
std::string cores(double number) {
    return fmt::format("{:.{}f}", number, number < 9.95 ? 1 : 0);
}
/// "71G/80G", "9.5/12": what is in use of all.
std::string part_cell(std::optional<double> used, std::optional<double> all, std::string (*used_text)(double),
                      std::string (*all_text)(double)) {
    return used ? used_text(*used) + (all ? "/" + all_text(*all) : "") : "";
}

std::string state_cell(rank_sample const& rank) {
    auto const in = rank.where.empty() ? "" : " in " + printable(rank.where);
    switch (rank.state) {
        case 'R': return "running";
        case 'S': return "asleep" + in;
        case 'D': return "blocked" + in;
        case 'T': return "stopped";
        case 't': return "traced";
        case 'Z': return "zombie";
        case 'X': return "dead";
        case 'I': return "idle";
        case '?': return {};
    }
    return printable(std::string(1, rank.state));
}

/// Returns the state that is worst, with the number of ranks in it: "2 stopped"; of healthy ranks "running" if one runs.
std::string worst_state(std::vector<rank_sample> const& ranks) {
    for (char const state : std::string_view("ZXTtDRSI"))
        if (auto const count = std::ranges::count(ranks, state, &rank_sample::state); count > 0) {
            rank_sample one;
            one.state = state;
            bool const is_healthy = std::string_view("RSI").find(state) != std::string_view::npos;
            return is_healthy ? state_cell(one) : fmt::format("{} {}", count, state_cell(one));
        }
    return {};
}

/// Values of rows, of which some are not known.
struct total {
    double sum = 0;
    int count = 0;
    template <typename Rows, typename Value>
    total(Rows const& rows, Value value) {
        for (auto const& row : rows)
            if (std::optional<double> const one = std::invoke(value, row)) sum += *one, ++count;
    }
    std::optional<double> all() const { return count > 0 ? std::optional(sum) : std::nullopt; }
    std::optional<double> mean() const { return count > 0 ? std::optional(sum / count) : std::nullopt; }
};

/// A line tells of a host or of a rank: then it is the part of its host with its rank, its GPU and its cores alone.
struct table_line {
    node_sample of;
    std::uint64_t collectives = 0;  ///< of the run: a rank does not wait in those to which it comes last
    bool is_odd = false;
    rank_sample const& rank() const { return of.ranks.front(); }
};

std::optional<double> busy_share(gpu_sample const& gpu) {
    return gpu.busy_percent ? std::optional(*gpu.busy_percent / 100.0) : std::nullopt;
}
std::optional<double> waiting_share(rank_sample const& rank) {
    return rank.waits ? rank.waits->waiting : std::nullopt;
}
std::optional<double> last_share(table_line const& line) {
    auto const& waits = line.rank().waits;
    return waits && waits->came_last && line.collectives > 0
               ? std::optional(static_cast<double>(*waits->came_last) / static_cast<double>(line.collectives))
               : std::nullopt;
}

enum class lines { all, of_ranks, of_hosts };

struct column {
    std::string_view title;
    lines where;
    std::size_t least, most;  ///< of its width
    int importance;           ///< columns with higher numbers are left out first
    std::string (*cell)(table_line const&);
    bool right = true;  ///< flush right
};

using in = table_line const&;
constexpr column known_columns[]{
    {"rank", lines::of_ranks, 4, 4, 0, [](in line) { return std::to_string(line.rank().rank); }},
    {"host", lines::all, 8, 32, 4, [](in line) { return printable(line.of.host); }, false},
    {"ranks", lines::of_hosts, 5, 5, 5, [](in line) { return std::to_string(line.of.ranks.size()); }},
    {"GPU", lines::of_ranks, 3, 5, 8, [](in line) { return printable(line.rank().gpu); }},
    {"util", lines::all, 4, 4, 3, [](in line) { return percent_cell(total(line.of.gpus, busy_share).mean()); }},
    {"GPU mem", lines::all, 9, 9, 12,
     [](in line) {
         return part_cell(total(line.of.gpus, &gpu_sample::used_bytes).all(),
                          total(line.of.gpus, &gpu_sample::memory_bytes).all(), short_bytes, short_bytes);
     }},
    {"MHz", lines::of_ranks, 9, 9, 10,
     [](in line) {
         return part_cell(total(line.of.gpus, &gpu_sample::clock_mhz).all(),
                          total(line.of.gpus, &gpu_sample::most_clock_mhz).all(), whole, whole);
     }},
    {"cores", lines::all, 7, 7, 6,
     [](in line) { return part_cell(total(line.of.ranks, &rank_sample::cores).all(), line.of.cpus, cores, whole); }},
    {"memory", lines::all, 6, 6, 7, [](in line) { return bytes_cell(total(line.of.ranks, &rank_sample::memory_bytes).all()); }},
    {"waits", lines::all, 5, 5, 1, [](in line) { return percent_cell(total(line.of.ranks, waiting_share).mean()); }},
    {"last", lines::of_ranks, 4, 4, 11, [](in line) { return percent_cell(last_share(line)); }},
    {"silent", lines::of_ranks, 6, 6, 9,
     [](in line) { return line.rank().silent_s ? short_time(*line.rank().silent_s) : std::string(); }},
    {"load", lines::of_hosts, 4, 4, 14, [](in line) { return line.of.load ? whole(*line.of.load) : std::string(); }},
    {"state", lines::of_ranks, 7, 28, 2, [](in line) { return state_cell(line.rank()); }, false},
    {"state", lines::of_hosts, 7, 14, 2, [](in line) { return worst_state(line.of.ranks); }, false},
    {"metric", lines::of_ranks, 12, 32, 13, [](in line) { return printable(line.rank().metric); }, false},
};

/// Returns a line for each rank or each host, odd ones first, then by rank. With a host that is odd its ranks are.
std::vector<table_line> make_lines(run_samples const& samples, lines kind, std::string const& host,
                                   std::vector<oddity> const& oddities) {
    bool const by_host = kind == lines::of_hosts;
    std::uint64_t collectives = 0;
    for (auto const& node : samples.nodes)
        for (auto const& rank : node.ranks)
            if (rank.waits) collectives = std::max(collectives, rank.waits->collectives + rank.waits->came_last.value_or(0));
    std::set<std::pair<std::string, int>> odd;  // -1: the whole host
    for (auto const& one : oddities) odd.emplace(one.host, by_host ? -1 : one.rank);
    std::vector<table_line> all;
    for (auto const& node : samples.nodes) {
        bool const is_odd = odd.contains({node.host, -1});
        if (by_host) all.push_back({node, collectives, is_odd});
        if (by_host || (!host.empty() && node.host != host)) continue;
        for (auto const& rank : node.ranks) {
            auto& line = all.emplace_back(table_line{{}, collectives, is_odd || odd.contains({node.host, rank.rank})});
            line.of.host = node.host;
            line.of.cpus = rank.allowed_cores;
            line.of.ranks = {rank};
            if (auto const* const gpu = gpu_of(node, rank)) line.of.gpus = {*gpu};
        }
    }
    std::ranges::stable_sort(all, {}, [&](auto const& line) { return std::pair(!line.is_odd, by_host ? 0 : line.rank().rank); });
    return all;
}

/// A column with its cells in all lines.
struct filled_column : column {
    std::vector<std::string> cells;
};

constexpr std::size_t mark_width = 1;  ///< "!" before an odd line

/// Returns the columns that have values. Only names make them wider.
std::vector<filled_column> fill_columns(std::vector<table_line> const& all, lines kind) {
    std::vector<filled_column> columns;
    for (auto const& known : known_columns) {
        if (known.where != kind && known.where != lines::all) continue;
        filled_column one{known, {}};
        std::size_t widest = 0;
        for (auto const& line : all) widest = std::max(widest, display_width(one.cells.emplace_back(known.cell(line))));
        if (one.title == "rank") one.least = one.most = std::max(one.least, widest);
        if (one.title == "host") one.most = std::clamp(widest, one.least, one.most);
        if (widest > 0) columns.push_back(std::move(one));
    }
    return columns;
}

/// Drops columns that do not fit, the less important first, and gives what is left over to those that can use it: `least` is then their width. Returns the gap
/// between columns.
std::size_t fit_columns(std::vector<filled_column>& columns, std::size_t width) {
    std::vector<int> by_importance;
    for (auto const& one : columns) by_importance.push_back(one.importance);
    std::ranges::sort(by_importance);
    auto used = mark_width;
    for (int const importance : by_importance) {
        auto const one = std::ranges::find(columns, importance, &column::importance);
        used += 1 + one->least;
        if (used <= width) continue;
        used -= 1 + one->least;
        columns.erase(one);
    }
    auto spare = width - std::min(width, used);
    auto const widen = [&](column& one) {
        auto const more = std::min(spare, one.most - one.least);
        one.least += more;
        spare -= more;
    };
    if (auto const host = std::ranges::find(columns, "host", &column::title); host != columns.end()) widen(*host);
    std::size_t const gap = spare >= columns.size() ? 2 : 1;
    spare -= (gap - 1) * columns.size();
    for (auto& one : columns) widen(one);
    return gap;
}

std::string without_end_blanks(std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
}

/// Returns the text cut to the width.
std::string cut(std::string_view text, std::size_t width) {
    return without_end_blanks(fit(text, width));
}

void lay_out(std::vector<table_line> const& all, lines kind, std::size_t width, top_page& page) {
    auto columns = fill_columns(all, kind);
    auto const gap = fit_columns(columns, width);
    if (columns.empty()) return;
    page.titles = " ";
    for (auto const& line : all) page.rows.push_back({line.is_odd ? "!" : " ", line.is_odd});
    for (auto const& one : columns) {
        auto const add = [&](std::string& line, std::string cell) {
            bool const is_whole = display_width(cell) <= one.least;
            if (one.title == "state" && !is_whole) cell.erase(std::min(cell.size(), cell.find(" in ")));
            line += std::string(gap, ' ') + fit(cell, one.least, one.right);
        };
        add(page.titles, std::string(one.title));
        for (std::size_t i = 0; i < all.size(); ++i) add(page.rows[i].text, one.cells[i]);
    }
    page.titles = without_end_blanks(std::move(page.titles));
    for (auto& row : page.rows) row.text = without_end_blanks(std::move(row.text));
}

/// Appends the text in lines of the width, divided at blanks and indented after the first.
void wrap(std::string_view text, std::size_t width, std::vector<std::string>& lines) {
    std::string line;
    for (auto const word : split(text, ' ')) {
        if (!line.empty() && display_width(line) + 1 + display_width(word) > width) {
            lines.push_back(cut(line, width));
            line = " ";
        }
        line += (line.empty() ? "" : " ") + std::string(word);
    }
    lines.push_back(cut(line, width));
}

/// Returns a sentence for each rank and node, without causes that a sentence names already, and for each node that does not answer.
std::vector<std::string> sentences(run_samples const& samples, top_view const& view, std::vector<oddity> const& oddities) {
    std::vector<std::string> all;
    auto const newest = newest_look(samples);
    for (auto const& node : samples.nodes)
        if (is_overdue(samples, newest - node.at_s))
            all.push_back(fmt::format("{}: no sample for {}", node.host, whole_seconds(view.now - node.at_s)));
    for (std::size_t i = 0; i < oddities.size();) {
        auto const& first = oddities[i];
        auto sentence = first.rank >= 0 ? fmt::format("rank {} on {}: {}", first.rank, first.host, first.reason)
                                        : fmt::format("{}: {}", first.host, first.reason);
        for (++i; i < oddities.size() && oddities[i].rank == first.rank && oddities[i].host == first.host; ++i)
            if (sentence.find(oddities[i].reason) == std::string::npos) sentence += "; " + oddities[i].reason;
        all.push_back(std::move(sentence));
    }
    return all;
}

void add_notes(run_samples const& samples, top_view const& view, std::vector<oddity> const& oddities, top_page& page) {
    auto const all = sentences(samples, view, oddities);
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::vector<std::string> lines;
        wrap(printable(all[i]), view.width, lines);
        bool const is_last = i + 1 == all.size();
        if (page.notes.size() + lines.size() + (is_last ? 0 : 1) > view.notes) {
            page.notes.push_back(cut(fmt::format("and {} more; --json lists all", all.size() - i), view.width));
            return;
        }
        page.notes.insert(page.notes.end(), lines.begin(), lines.end());
    }
}

void add_header(run_samples const& samples, top_view const& view, top_page& page) {
    auto const ranks = count_ranks(samples);
    auto const newest = newest_look(samples);
    auto const add = [&](std::string const& text) { page.header.push_back(cut(printable(text), view.width)); };
    add(samples.job.empty() ? samples.command : fmt::format("job {}: {}", samples.job, samples.command));
    auto const size = static_cast<std::size_t>(std::max(samples.world_size, 0));
    auto text = fmt::format("{}{} on {}", ranks == size ? "" : fmt::format("{} of ", ranks),
                            counted(std::max(samples.world_size, 0), "rank"),
                            counted(static_cast<std::int64_t>(samples.nodes.size()), "node"));
    if (samples.generation > 0) text += fmt::format(", generation {}", samples.generation);
    if (samples.started_s > 0) text += fmt::format(", started {} ago", whole_seconds(view.now - samples.started_s));
    if (auto const age = view.now - newest; newest > 0 && is_overdue(samples, age))
        text = fmt::format("the samples are {} old; {}", whole_seconds(age), text);
    if (!view.host.empty()) text = fmt::format("only {}; {}", view.host, text);
    add(text);
}

}  // namespace

bool has_many_ranks(run_samples const& samples) {
    return count_ranks(samples) > most_single_ranks;
}

top_page make_top_page(run_samples const& samples, top_view const& view) {
    auto const oddities = find_oddities(samples);
    top_page page;
    add_header(samples, view, page);
    auto const kind = view.by_host && view.host.empty() ? lines::of_hosts : lines::of_ranks;
    lay_out(make_lines(samples, kind, view.host, oddities), kind, view.width, page);
    add_notes(samples, view, oddities, page);
    return page;
}

std::string text_of(top_page const& page) {
    auto text = join(page.header, "\n") + "\n\n" + page.titles + "\n";
    for (auto const& row : page.rows) text += row.text + "\n";
    return text + (page.notes.empty() ? "" : "\n" + join(page.notes, "\n") + "\n");
}

}  // namespace muster
