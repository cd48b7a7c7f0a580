#include "launch/jobs/top/top_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "base/units.hpp"
#include "launch/jobs/top/cells.hpp"
#include "launch/samples/remarks/oddities.hpp"

namespace muster {

namespace {

struct column {
    char const* title;
    std::size_t least, most;           ///< of its width
    int importance;                    ///< columns with higher numbers are left out first
    bool right = true;                 ///< flush right
    bool descends = true;              ///< the largest come first
    bool whole_or_first_word = false;  ///< what does not fit is not cut within a word
};

struct cell {
    std::string text;
    std::optional<double> number = {};  ///< to sort by; nothing: sort by the text
};

struct table_row {
    std::vector<cell> cells;
    bool is_odd = false;
};

struct table {
    std::vector<column> columns;
    std::vector<table_row> rows;
};

std::string whole_seconds(double seconds) {
    return format_duration(duration(std::floor(std::max(seconds, 1.0))));
}

cell percent_cell(std::optional<double> share) {
    return share ? cell{fmt::format("{:.0f}%", std::clamp(*share, 0.0, 9.99) * 100), share} : cell{};
}
cell bytes_cell(std::optional<double> bytes) {
    return bytes ? cell{short_bytes(*bytes), bytes} : cell{};
}
/// "71G/80G", "9.5/12": what is in use of all.
cell part_cell(std::optional<double> used, std::optional<double> all, std::string (*text)(double)) {
    return used ? cell{text(*used) + (all ? "/" + text(*all) : ""), used} : cell{};
}
std::string whole(double number) {
    return fmt::format("{:.0f}", number);
}
cell cores_cell(std::optional<double> used, std::optional<double> all) {
    if (!used) return {};
    return {fmt::format("{:.{}f}{}", *used, *used < 9.95 ? 1 : 0, all ? "/" + whole(*all) : ""), used};
}

std::string state_text(char state, std::string const& where) {
    auto const in = where.empty() ? "" : " in " + printable(where);
    switch (state) {
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
    return printable(std::string(1, state));
}

std::size_t host_width(run_samples const& samples) {
    std::size_t width = 8;
    for (auto const& node : samples.nodes) width = std::max(width, display_width(printable(node.host)));
    return std::min<std::size_t>(width, 32);
}

table make_rank_table(run_samples const& samples, top_view const& view, std::vector<oddity> const& oddities) {
    auto const digits = std::max<std::size_t>(4, std::to_string(samples.world_size).size());
    table made{{{"rank", digits, digits, 0, true, false},
                {"host", 8, host_width(samples), 4, false, false},
                {"GPU", 3, 5, 7, true, false},
                {"util", 4, 4, 3},
                {"GPU mem", 9, 9, 11},
                {"MHz", 9, 9, 9},
                {"cores", 7, 7, 5},
                {"memory", 6, 6, 6},
                {"waits", 5, 5, 1},
                {"last", 4, 4, 10},
                {"silent", 6, 6, 8},
                {"state", 7, 28, 2, false, false, true},
                {"metric", 12, 32, 12, false, false}},
               {}};
    std::set<int> odd;
    for (auto const& one : oddities) odd.insert(one.rank);
    std::uint64_t collectives = 0;  // of the run: a rank does not wait in those to which it comes last
    for (auto const& node : samples.nodes)
        for (auto const& rank : node.ranks)
            if (rank.waits) collectives = std::max(collectives, rank.waits->collectives + rank.waits->came_last.value_or(0));
    for (auto const& node : samples.nodes)
        for (auto const& rank : node.ranks) {
            if (!view.host.empty() && node.host != view.host) continue;
            auto const* const found = gpu_of(node, rank);
            auto const& gpu = found != nullptr ? *found : gpu_sample{};
            auto const waits = rank.waits.value_or(wait_sample{});
            auto const last = waits.came_last && collectives > 0
                                  ? std::optional(static_cast<double>(*waits.came_last) / static_cast<double>(collectives))
                                  : std::nullopt;
            made.rows.push_back({{{std::to_string(rank.rank), rank.rank},
                                  {printable(node.host)},
                                  {printable(rank.gpu)},
                                  percent_cell(gpu.busy_percent ? std::optional(*gpu.busy_percent / 100.0) : std::nullopt),
                                  part_cell(gpu.used_bytes, gpu.memory_bytes, short_bytes),
                                  part_cell(gpu.clock_mhz, gpu.most_clock_mhz, whole),
                                  cores_cell(rank.cores, rank.allowed_cores),
                                  bytes_cell(rank.memory_bytes),
                                  percent_cell(waits.waiting),
                                  percent_cell(last),
                                  rank.silent_s ? cell{short_time(*rank.silent_s), rank.silent_s} : cell{},
                                  {state_text(rank.state, rank.where)},
                                  {printable(rank.metric)}},
                                 odd.contains(rank.rank)});
        }
    return made;
}

/// The sum, mean and least of values of which some are not known.
struct total {
    double sum = 0, least = 0;
    int count = 0;
    void add(std::optional<double> value) {
        if (!value) return;
        sum += *value;
        least = count++ == 0 ? *value : std::min(least, *value);
    }
    std::optional<double> known(double value) const { return count > 0 ? std::optional(value) : std::nullopt; }
    std::optional<double> all() const { return known(sum); }
    std::optional<double> mean() const { return known(sum / std::max(count, 1)); }
};

/// Returns the state that is worst, with the number of ranks in it: "2 stopped"; of healthy ranks "running" if one runs.
std::string worst_state(std::vector<rank_sample> const& ranks) {
    for (char const state : std::string_view("ZXTtDRSI"))
        if (auto const count = std::ranges::count(ranks, state, &rank_sample::state); count > 0)
            return std::string_view("RSI").find(state) != std::string_view::npos
                       ? state_text(state, {})
                       : fmt::format("{} {}", count, state_text(state, {}));
    return {};
}

table make_host_table(run_samples const& samples, std::vector<oddity> const& oddities) {
    table made{{{"host", 8, host_width(samples), 0, false, false},
                {"ranks", 5, 5, 4},
                {"util", 4, 4, 3},
                {"least", 5, 5, 5},
                {"GPU mem", 9, 9, 8},
                {"cores", 7, 7, 6},
                {"memory", 6, 6, 7},
                {"waits", 5, 5, 1},
                {"load", 4, 4, 9},
                {"steal", 5, 5, 10},
                {"received/s", 10, 10, 11},
                {"sent/s", 6, 6, 12},
                {"state", 7, 14, 2, false, false}},
               {}};
    std::set<std::string> odd;
    for (auto const& one : oddities) odd.insert(one.host);
    for (auto const& node : samples.nodes) {
        total busy, used, memory, cores, resident, waiting;
        for (auto const& gpu : node.gpus) {
            busy.add(gpu.busy_percent ? std::optional(*gpu.busy_percent / 100.0) : std::nullopt);
            used.add(gpu.used_bytes);
            memory.add(gpu.memory_bytes);
        }
        for (auto const& rank : node.ranks) {
            cores.add(rank.cores);
            resident.add(rank.memory_bytes);
            waiting.add(rank.waits ? rank.waits->waiting : std::nullopt);
        }
        made.rows.push_back({{{printable(node.host)},
                              {std::to_string(node.ranks.size()), static_cast<double>(node.ranks.size())},
                              percent_cell(busy.mean()),
                              percent_cell(busy.known(busy.least)),
                              part_cell(used.all(), memory.all(), short_bytes),
                              cores_cell(cores.all(), node.cpus),
                              bytes_cell(resident.all()),
                              percent_cell(waiting.mean()),
                              node.load ? cell{whole(*node.load), node.load} : cell{},
                              percent_cell(node.steal),
                              bytes_cell(node.received_bytes_per_s),
                              bytes_cell(node.sent_bytes_per_s),
                              {worst_state(node.ranks)}},
                             odd.contains(node.host)});
    }
    return made;
}

/// Where a column stands in the rows, and its width on this page.
struct shown_column {
    std::size_t index;
    std::size_t width;
};

constexpr std::size_t mark_width = 1;  ///< "!" before an odd row

/// Chooses the columns that fit, by their importance, and gives what is left over to those that can use it.
std::vector<shown_column> choose_columns(table const& of, std::size_t width, std::size_t& gap) {
    std::vector<std::size_t> by_importance;
    for (std::size_t c = 0; c < of.columns.size(); ++c)
        if (std::ranges::any_of(of.rows, [&](auto const& row) { return !row.cells[c].text.empty(); })) by_importance.push_back(c);
    std::ranges::sort(by_importance, {}, [&](std::size_t c) { return of.columns[c].importance; });
    std::vector<shown_column> chosen;
    std::size_t used = mark_width;
    for (auto const c : by_importance) {
        if (used + 1 + of.columns[c].least > width) continue;
        used += 1 + of.columns[c].least;
        chosen.push_back({c, of.columns[c].least});
    }
    std::ranges::sort(chosen, {}, &shown_column::index);
    auto spare = width - std::min(width, used);
    auto const widen = [&](shown_column& one) {
        auto const more = std::min(spare, of.columns[one.index].most - one.width);
        one.width += more;
        spare -= more;
    };
    for (auto& one : chosen)
        if (of.columns[one.index].title == std::string_view("host")) widen(one);
    gap = spare >= chosen.size() ? 2 : 1;
    spare -= (gap - 1) * chosen.size();
    for (auto& one : chosen) widen(one);
    return chosen;
}

bool comes_before(cell const& a, cell const& b, bool descends) {
    if (a.text.empty() || b.text.empty())
        return !a.text.empty() && b.text.empty();  // what is not known comes last in either order
    if (a.number && b.number) return descends ? *a.number > *b.number : *a.number < *b.number;
    return descends ? a.text > b.text : a.text < b.text;
}

std::string without_end_blanks(std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
}

void lay_out(table of, top_view const& view, top_page& page) {
    std::size_t gap = 1;
    auto const chosen = choose_columns(of, view.width, gap);
    if (chosen.empty()) return;
    auto by = chosen.front().index;
    for (auto const& one : chosen) {
        page.columns.emplace_back(of.columns[one.index].title);
        if (view.sort == of.columns[one.index].title) by = one.index;
    }
    page.sorted_by = of.columns[by].title;
    bool const descends = of.columns[by].descends != view.reverse;
    std::ranges::stable_sort(of.rows,
                             [&](auto const& a, auto const& b) { return comes_before(a.cells[by], b.cells[by], descends); });
    auto const line = [&](std::string text, auto const& text_at) {
        for (auto const& one : chosen) {
            auto const& form = of.columns[one.index];
            auto shown = text_at(one.index);
            if (form.whole_or_first_word && display_width(shown) > one.width)
                shown.erase(std::min(shown.size(), shown.find(' ')));
            text += std::string(gap, ' ') + fit(shown, one.width, form.right);
        }
        return without_end_blanks(std::move(text));
    };
    page.titles = line(" ", [&](std::size_t c) { return std::string(of.columns[c].title); });
    for (auto const& row : of.rows)
        page.rows.push_back({line(row.is_odd ? "!" : " ", [&](std::size_t c) { return row.cells[c].text; }), row.is_odd});
}

/// Appends the text in lines of the width, divided at blanks and indented after the first.
void wrap(std::string_view text, std::size_t width, std::vector<std::string>& lines) {
    std::string line;
    for (auto const word : split(text, ' ')) {
        if (!line.empty() && display_width(line) + 1 + display_width(word) > width) {
            lines.push_back(without_end_blanks(fit(line, width)));
            line = " ";
        }
        line += (line.empty() ? "" : " ") + std::string(word);
    }
    lines.push_back(without_end_blanks(fit(line, width)));
}

/// Returns a sentence for each rank and node, without causes that a sentence names already, and for each node that does not answer.
std::vector<std::string> sentences(run_samples const& samples, top_view const& view, std::vector<oddity> const& oddities) {
    std::vector<std::string> all;
    double newest = 0;
    for (auto const& node : samples.nodes) newest = std::max(newest, node.at_s);
    for (auto const& node : samples.nodes)
        if (newest - node.at_s > std::max(10.0, 3 * samples.every_s))
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
            page.notes.push_back(
                without_end_blanks(fit(fmt::format("and {} more; --json lists all", all.size() - i), view.width)));
            return;
        }
        page.notes.insert(page.notes.end(), lines.begin(), lines.end());
    }
}

void add_header(run_samples const& samples, top_view const& view, top_page& page) {
    std::size_t ranks = 0;
    double newest = 0;
    for (auto const& node : samples.nodes) {
        ranks += node.ranks.size();
        newest = std::max(newest, node.at_s);
    }
    auto const add = [&](std::string const& text) {
        page.header.push_back(without_end_blanks(fit(printable(text), view.width)));
    };
    add(samples.job.empty() ? samples.command : fmt::format("job {}: {}", samples.job, samples.command));
    auto const size = static_cast<std::size_t>(std::max(samples.world_size, 0));
    auto text = fmt::format("{}{} on {}", ranks == size ? "" : fmt::format("{} of ", ranks),
                            counted(std::max(samples.world_size, 0), "rank"),
                            counted(static_cast<std::int64_t>(samples.nodes.size()), "node"));
    if (samples.generation > 0) text += fmt::format(", generation {}", samples.generation);
    if (samples.started_s > 0) text += fmt::format(", started {} ago", whole_seconds(view.now - samples.started_s));
    if (auto const age = view.now - newest; newest > 0 && age > std::max(10.0, 3 * samples.every_s))
        text = fmt::format("the samples are {} old; {}", whole_seconds(age), text);
    if (!view.host.empty()) text = fmt::format("only {}; {}", view.host, text);
    add(text);
}

}  // namespace

bool has_many_ranks(run_samples const& samples) {
    std::size_t ranks = 0;
    for (auto const& node : samples.nodes) ranks += node.ranks.size();
    return ranks > most_single_ranks;
}

top_page make_top_page(run_samples const& samples, top_view const& view) {
    auto const oddities = find_oddities(samples);
    top_page page;
    add_header(samples, view, page);
    lay_out(view.by_host && view.host.empty() ? make_host_table(samples, oddities) : make_rank_table(samples, view, oddities),
            view, page);
    add_notes(samples, view, oddities, page);
    return page;
}

std::string text_of(top_page const& page) {
    auto text = join(page.header, "\n") + "\n\n" + page.titles + "\n";
    for (auto const& row : page.rows) text += row.text + "\n";
    return text + (page.notes.empty() ? "" : "\n" + join(page.notes, "\n") + "\n");
}

}  // namespace muster
