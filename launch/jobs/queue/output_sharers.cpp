#include "launch/jobs/queue/output_sharers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/text.hpp"
#include "launch/scheduler/read_allocation.hpp"

namespace muster {

namespace {

/// Returns the text after `name`, up to the next space; `name` begins the record or follows a space.
std::string_view word_of(std::string_view record, std::string_view name) {
    for (auto at = record.find(name); at != std::string_view::npos; at = record.find(name, at + 1))
        if (at == 0 || record[at - 1] == ' ') {
            auto const rest = record.substr(at + name.size());
            return rest.substr(0, rest.find(' '));
        }
    return {};
}

/// A path may contain spaces, so it is compared rather than cut out.
bool writes_to(std::string_view record, std::string_view path) {
    return std::ranges::any_of(std::initializer_list<std::string_view>{"StdOut", "StdErr"}, [&](auto name) {
        auto const wanted = fmt::format(" {}={}", name, path);
        auto const at = record.find(wanted);
        return at != std::string_view::npos && (at + wanted.size() == record.size() || record[at + wanted.size()] == ' ');
    });
}

/// Slurm writes local times, which sort as text, or a word for a time that is not known.
std::string_view time_of(std::string_view record, std::string_view name) {
    auto const time = word_of(record, name);
    return !time.empty() && is_digit(time.front()) ? time : std::string_view();
}

struct writer {
    std::string_view id, start, end, het_job;
    std::int64_t number = 0;
    std::string shown;
    bool has_ended = false;
    bool is_before(writer const& other) const { return start != other.start ? start < other.start : number < other.number; }
};

/// Returns nothing for a job that has not started: the start of a waiting job is a guess.
std::optional<writer> read_writer(std::string_view record) {
    auto const state = word_of(record, "JobState=");
    auto const start = time_of(record, "StartTime=");
    if (start.empty() || state.starts_with("PENDING") || state.starts_with("REQUEUE")) return std::nullopt;
    writer made{.id = word_of(record, "JobId="),
                .start = start,
                .end = time_of(record, "EndTime="),
                .het_job = word_of(record, "HetJobId="),
                .number = 0,
                .has_ended = false};
    made.number = parse_integer(made.id).value_or(0);
    auto const task = word_of(record, "ArrayTaskId=");
    made.shown = task.empty() || !is_digit(task.front()) ? std::string(made.id)
                                                         : fmt::format("{}_{}", word_of(record, "ArrayJobId="), task);
    made.has_ended = !state.starts_with("RUNNING") && !state.starts_with("COMPLETING") && !state.starts_with("SUSPENDED");
    return made;
}

}  // namespace

output_sharers find_output_sharers(std::string_view records, std::string_view raw_id, std::string_view path) {
    output_sharers found;
    std::optional<writer> own;
    std::vector<writer> others;
    for (auto const record : split(records, '\n')) {
        bool const is_own = word_of(record, "JobId=") == raw_id;
        if (!is_own && !writes_to(record, path)) continue;
        auto one = read_writer(record);
        if (!one) continue;
        if (is_own)
            own = std::move(one);
        else
            others.push_back(*std::move(one));
    }
    if (!own) return found;
    if (!own->het_job.empty())  // the parts of one job, whose script writes the file
        std::erase_if(others, [&](writer const& other) { return other.het_job == own->het_job; });
    found.has_started = true;
    found.has_ended = own->has_ended;
    if (auto const start = parse_local_time(std::string(own->start), "%Y-%m-%dT%H:%M:%S"))
        found.started_at = std::chrono::system_clock::to_time_t(*start);
    std::ranges::sort(others, [](auto const& a, auto const& b) { return a.is_before(b); });
    for (auto const& other : others)
        if (own->is_before(other))
            found.later = other.shown, found.later_start = other.start;
        else {
            found.is_first = false;
            if (other.end.empty() || other.end > own->start) found.before = other.shown;
        }
    return found;
}

bool has_own_name(std::string_view path, std::string_view shown_id, std::string_view raw_id) {
    return std::ranges::any_of(
        std::initializer_list<std::string_view>{raw_id, shown_id.substr(0, shown_id.find_first_of("_[."))}, [&](auto number) {
            if (number.empty()) return false;
            for (auto at = path.find(number); at != std::string_view::npos; at = path.find(number, at + 1)) {
                auto const end = at + number.size();
                if ((at == 0 || !is_digit(path[at - 1])) && (end == path.size() || !is_digit(path[end]))) return true;
            }
            return false;
        });
}

std::string with_own_name(std::string_view path) {
    auto const file = std::filesystem::path(path).filename();
    return fmt::format("{}-%j{}", file.stem().string(), file.extension().string());
}

}  // namespace muster
