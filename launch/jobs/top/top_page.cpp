#include "launch/jobs/top/top_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

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
    bool whole_or_first_word = false;  ///< what does not fit is not cut within a word
};

struct table_row {
    bool is_odd = false;
    int rank = 0;
    std::vector<std::string> cells;
};

struct table {
    std::vector<column> columns;
    std::vector<table_row> rows;
};

std::string whole_seconds(double seconds) {
    return format_duration(duration(std::floor(std::max(seconds, 1.0))));
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

std::optional<double> busy_share(gpu_sample const& gpu) {
    return gpu.busy_percent ? std::optional(*gpu.busy_percent / 100.0) : std::nullopt;
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
    table made{{{"rank", digits, digits, 0},
                {"host", 8, host_width(samples), 4, false},
                {"GPU", 3, 5, 7},
                {"util", 4, 4, 3},
                {"GPU mem", 9, 9, 11},
                {"MHz", 9, 9, 9},
                {"cores", 7, 7, 5},
                {"memory", 6, 6, 6},
                {"waits", 5, 5, 1},
                {"last", 4, 4, 10},
                {"silent", 6, 6, 8},
                {"state", 7, 28, 2, false, true},
                {"metric", 12, 32, 12, false}},
               {}};
    std::set<int> odd;
    std::set<std::string> odd_hosts;
    for (auto const& one : oddities)
        if (one.rank >= 0)
            odd.insert(one.rank);
        else
            odd_hosts.insert(one.host);
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
            made.rows.push_back(
                {odd.contains(rank.rank) || odd_hosts.contains(node.host),
                 rank.rank,
                 {std::to_string(rank.rank), printable(node.host), printable(rank.gpu), percent_cell(busy_share(gpu)),
                  part_cell(gpu.used_bytes, gpu.memory_bytes, short_bytes, short_bytes),
                  part_cell(gpu.clock_mhz, gpu.most_clock_mhz, whole, whole),
                  part_cell(rank.cores, rank.allowed_cores, cores, whole), bytes_cell(rank.memory_bytes),
                  percent_cell(waits.waiting), percent_cell(last), rank.silent_s ? short_time(*rank.silent_s) : "",
                  state_text(rank.state, rank.where), printable(rank.metric)}});
        }
    return made;
}

/// The sum of values of which some are not known.
struct total {
    double sum = 0;
    int count = 0;
    void add(std::optional<double> value) {
        if (!value) return;
        sum += *value;
        ++count;
    }
    std::optional<double> all() const { return count > 0 ? std::optional(sum) : std::nullopt; }
    std::optional<double> mean() const { return count > 0 ? std::optional(sum / count) : std::nullopt; }
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
    table made{{{"host", 8, host_width(samples), 0, false},
                {"ranks", 5, 5, 4},
                {"util", 4, 4, 3},
                {"GPU mem", 9, 9, 7},
                {"cores", 7, 7, 5},
                {"memory", 6, 6, 6},
                {"waits", 5, 5, 1},
                {"load", 4, 4, 8},
                {"state", 7, 14, 2, false}},
               {}};
    std::set<std::string> odd;
    for (auto const& one : oddities) odd.insert(one.host);
    for (auto const& node : samples.nodes) {
        total busy, used, memory, processors, resident, waiting;
        for (auto const& gpu : node.gpus) {
            busy.add(busy_share(gpu));
            used.add(gpu.used_bytes);
            memory.add(gpu.memory_bytes);
        }
        for (auto const& rank : node.ranks) {
            processors.add(rank.cores);
            resident.add(rank.memory_bytes);
            waiting.add(rank.waits ? rank.waits->waiting : std::nullopt);
        }
        made.rows.push_back({odd.contains(node.host),
                             0,
                             {printable(node.host), std::to_string(node.ranks.size()), percent_cell(busy.mean()),
                              part_cell(used.all(), memory.all(), short_bytes, short_bytes),
                              part_cell(processors.all(), node.cpus, cores, whole), bytes_cell(resident.all()),
                              percent_cell(waiting.mean()), node.load ? whole(*node.load) : "", worst_state(node.ranks)}});
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
        if (std::ranges::any_of(of.rows, [&](auto const& row) { return !row.cells[c].empty(); })) by_importance.push_back(c);
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

std::string without_end_blanks(std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
}

/// Returns the text cut to the width.
std::string cut(std::string_view text, std::size_t width) {
    return without_end_blanks(fit(text, width));
}

void lay_out(table of, top_view const& view, top_page& page) {
    std::size_t gap = 1;
    auto const chosen = choose_columns(of, view.width, gap);
    if (chosen.empty()) return;
    std::ranges::stable_sort(of.rows, {}, [](auto const& row) { return std::pair(!row.is_odd, row.rank); });
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
        page.rows.push_back({line(row.is_odd ? "!" : " ", [&](std::size_t c) { return row.cells[c]; }), row.is_odd});
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
