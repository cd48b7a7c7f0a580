#include "launch/samples/metric_line.hpp"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "base/text.hpp"

namespace muster {

namespace {

/// Whatever a rank prints passes here: memmem() is several times as fast as find() of std::string_view.
std::size_t find_mark(std::string_view bytes) {
    auto const* const found = ::memmem(bytes.data(), bytes.size(), metric_mark.data(), metric_mark.size());
    return found == nullptr ? std::string_view::npos : static_cast<std::size_t>(static_cast<char const*>(found) - bytes.data());
}

}  // namespace

std::optional<metric_value> parse_metric_line(std::string_view line) {
    auto const at = line.find(metric_mark);
    if (at == std::string_view::npos) return std::nullopt;
    std::vector<std::string> words;
    for (auto const word : split(line.substr(at + metric_mark.size()), ' '))
        if (!trim(word).empty()) words.push_back(without_controls(trim(word)));
    if (words.size() < 2 || words.size() > 3 || !parse_real(words[1])) return std::nullopt;
    return metric_value{words[0], words[1], words.size() == 3 ? words[2] : ""};
}

std::optional<std::int64_t> parse_checkpoint_step(std::string_view behind) {
    auto const step = parse_integer(trim(behind.substr(0, behind.find('\n'))));
    return step && *step >= 0 ? std::optional<std::int64_t>(*step) : std::nullopt;
}

void last_metric::take(std::string_view bytes) {
    constexpr auto border = metric_mark.size() - 1;
    while (!bytes.empty()) {
        if (within_) {
            auto const end = bytes.find('\n');
            line_.append(bytes.substr(0, std::min(end, longest + 1 - std::min(line_.size(), longest + 1))));
            if (end == std::string_view::npos) return;
            finish();
            bytes.remove_prefix(end + 1);
            continue;
        }
        auto const joined = line_.empty() ? std::string() : line_ + std::string(bytes.substr(0, border));
        if (auto const at = find_mark(joined); at != std::string::npos) {
            bytes.remove_prefix(at + metric_mark.size() - line_.size());
        } else if (auto const here = find_mark(bytes); here != std::string_view::npos) {
            bytes.remove_prefix(here + metric_mark.size());
        } else {
            line_.append(bytes.substr(bytes.size() - std::min(bytes.size(), border)));
            line_.erase(0, line_.size() - std::min(line_.size(), border));
            return;
        }
        within_ = true;
        line_.clear();
    }
}

void last_metric::finish() {
    auto const told = line_.size() > longest ? std::nullopt : parse_metric_line(fmt::format("{}{}", metric_mark, line_));
    if (told) text_ = fmt::format("{} {}{}{}", told->name, told->value, told->unit.empty() ? "" : " ", told->unit);
    within_ = false;
    line_.clear();
}

}  // namespace muster
