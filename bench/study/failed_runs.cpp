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

/// Without "[host:rank] ", "  | " (what a rank wrote, in the launcher's report) and "muster: error: ".
std::string_view without_tag(std::string_view line) {
    auto out = trim(line);
    if (out.starts_with('[')) {
        auto const end = out.find("] ");
        auto const tag = out.substr(0, end);
        auto const colon = tag.rfind(':');
        if (end != out.npos && colon != tag.npos && colon + 1 < tag.size() &&
            std::ranges::all_of(tag.substr(colon + 1), is_digit))
            out = trim(out.substr(end + 2));
    }
    for (std::string_view const tag : {"| ", "muster: error: "})
        if (out.starts_with(tag)) out = trim(out.substr(tag.size()));
    return out;
}

/// At most so many bytes, and no part of a code point.
std::string_view cut(std::string_view text) {
    if (text.size() <= longest_words) return text;
    auto end = longest_words;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    return text.substr(0, end);
}

}  // namespace

std::string last_words(std::string_view output) {
    while (!output.empty()) {
        auto const end = output.find_last_not_of("\r\n");
        if (end == output.npos) return {};
        output = output.substr(0, end + 1);
        auto const begin = output.find_last_of("\r\n");
        auto const words = without_tag(begin == output.npos ? output : output.substr(begin + 1));
        if (!words.empty() && words != "|") return without_controls(cut(words)) + (words.size() > longest_words ? "…" : "");
        output = begin == output.npos ? std::string_view() : output.substr(0, begin);
    }
    return {};
}

std::string failure_of(study_run const& run) {
    return fmt::format("{}{}{}", run.reason, run.last_words.empty() ? "" : ": " + run.last_words,
                       run.output.empty() ? "" : "; see " + run.output);
}

std::string last_lines(std::filesystem::path const& file) {
    std::ifstream from(file);
    std::deque<std::string> lines;
    for (std::string line; std::getline(from, line);) {
        lines.push_back(std::move(line));
        if (lines.size() > most_lines_of_report) lines.pop_front();
    }
    auto const report =
        std::find_if(lines.rbegin(), lines.rend(), [](auto const& line) { return line.starts_with("muster: error: "); });
    if (report != lines.rend())
        lines.erase(lines.begin(), report.base() - 1);
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
