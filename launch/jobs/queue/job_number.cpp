#include "launch/jobs/queue/job_number.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace muster {

namespace {

bool is_part_of_number(char c) noexcept {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-' || c == '[' ||
           c == ']';
}

}  // namespace

bool is_job_number(std::string_view word) noexcept {
    return !word.empty() && word.size() < 200 && is_digit(word.front()) &&
           std::all_of(word.begin(), word.end(), is_part_of_number);
}

std::optional<std::string> parse_job_number(std::string_view printed) {
    auto const text = trim(printed);
    auto const line = text.rfind('\n');
    auto last = trim(line == std::string_view::npos ? text : text.substr(line + 1));
    last = last.substr(0, last.find(';'));
    return is_job_number(last) ? std::optional(std::string(last)) : std::nullopt;
}

}  // namespace muster
