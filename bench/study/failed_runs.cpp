#include "bench/study/failed_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <set>

#include "base/text.hpp"
#include "bench/study/findings.hpp"

namespace muster {

namespace {

constexpr std::size_t longest_words = 160, most_lines = 12, most_lines_of_report = 40;

constexpr std::string_view report = "muster: error: ", quoted = "| ";

/// Returns the line without "[host:rank] ", which precedes what a rank writes.
std::string_view without_tag(std::string_view line) {
    auto const end = line.find("] ");
    auto const colon = line.substr(0, end).rfind(':');
    if (!line.starts_with('[') || end == line.npos || colon == line.npos) return trim(line);
    auto const number = line.substr(colon + 1, end - colon - 1);
    return !number.empty() && std::ranges::all_of(number, is_digit) ? trim(line.substr(end + 2)) : trim(line);
}

bool is_of_scheduler(std::string_view line) {
    return line.starts_with("srun: ") || line.starts_with("slurmstepd: ");
}

/// Returns at most longest_words bytes, without a part of a code point.
std::string_view cut(std::string_view text) {
    if (text.size() <= longest_words) return text;
    auto end = longest_words;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    return text.substr(0, end);
}

}  // namespace

std::string last_words(std::string_view output) {
    std::string_view last, said;  // what the ranks wrote, and what the launcher's last report quotes, or begins with
    for (auto const line : split(output, '\n')) {
        auto const words =
            without_tag(line.substr(line.find_last_of('\r', line.size() - std::min<std::size_t>(line.size(), 2)) + 1));
        if (words.empty() || words == trim(quoted) || is_of_scheduler(words)) continue;
        if (words.starts_with(report))
            said = words.substr(report.size());
        else if (!said.empty() && words.starts_with(quoted))
            said = trim(words.substr(quoted.size()));
        last = words;
    }
    auto const words = said.empty() ? last : said;
    return without_controls(cut(words)) + (words.size() > longest_words ? "…" : "");
}

std::string failure_of(study_run const& run) {
    return fmt::format("{}{}{}", run.reason, run.last_words.empty() ? "" : ": " + run.last_words,
                       run.output.empty() ? "" : "; see " + run.output);
}

std::string outcome_of(study_run const& run) {
    if (run.status == run_status::ok) return {};
    return (run.status == run_status::failed ? "failed: " : "") + failure_of(run);
}

std::string last_lines(std::filesystem::path const& file) {
    std::ifstream from(file);
    std::deque<std::string> lines;
    for (std::string line; std::getline(from, line);) {
        lines.push_back(std::move(line));
        if (lines.size() > most_lines_of_report) lines.pop_front();
    }
    auto const reported = std::find_if(lines.rbegin(), lines.rend(), [](auto const& line) { return line.starts_with(report); });
    if (reported != lines.rend())
        lines.erase(lines.begin(), reported.base() - 1);
    else if (lines.size() > most_lines)
        lines.erase(lines.begin(), lines.end() - most_lines);
    std::string out;
    for (auto const& line : lines) out += "\n  " + without_controls(line);
    return out;
}

std::string failures_text(study const& results, std::filesystem::path const& folder) {
    std::string out;
    std::set<int> told;
    for (auto const& run : results.runs) {
        bool const failed = run.status == run_status::failed || run.status == run_status::timed_out;
        if (!failed || run.warmup || run.output.empty() || !told.insert(run.ranks).second) continue;
        auto const path = folder / run.output;
        if (auto const lines = last_lines(path); !lines.empty())
            out += fmt::format("{} failed; the end of {}:{}\n", ranks_text(run.ranks), path.string(), lines);
    }
    return out;
}

}  // namespace muster
