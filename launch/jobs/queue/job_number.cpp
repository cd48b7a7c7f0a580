#include "launch/jobs/queue/job_number.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "launch/scheduler/flux_resources.hpp"

namespace muster {

namespace {

bool is_part_of_number(char c) noexcept {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-' || c == '[' ||
           c == ']';
}

/// Flux's numbers: f and digits to the base of 58, in which 0, I, O and l are left out.
bool is_flux_number(std::string_view word) noexcept {
    constexpr std::string_view digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    return word.size() > 1 && word.size() <= 12 && word.front() == 'f' &&
           word.find_first_not_of(digits, 1) == std::string_view::npos;
}

}  // namespace

bool is_job_number(std::string_view word) noexcept {
    if (is_flux_number(plain_flux_id(word))) return true;
    return !word.empty() && word.size() < 200 && is_digit(word.front()) &&
           std::all_of(word.begin(), word.end(), is_part_of_number);
}

std::optional<std::string> parse_job_number(std::string_view printed) {
    auto const text = trim(printed);
    auto const line = text.rfind('\n');
    auto last = trim(line == std::string_view::npos ? text : text.substr(line + 1));
    last = last.substr(0, last.find(';'));
    return is_job_number(last) ? std::optional(plain_flux_id(last)) : std::nullopt;
}

}  // namespace muster
