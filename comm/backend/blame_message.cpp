#include "comm/backend/blame_message.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.hpp"

namespace muster::detail {

namespace {

constexpr std::size_t longest = 1024;

}  // namespace

std::string write_blame(std::vector<late_rank> const& late) {
    std::string text;
    for (auto const& each : late) {
        std::string const line = fmt::format("{} {}\n", each.rank, each.why);
        if (text.size() + line.size() > longest) break;
        text += line;
    }
    return text;
}

std::vector<late_rank> read_blame(std::string_view text, std::string_view sender, int size) {
    std::vector<late_rank> late;
    while (!text.empty()) {
        auto const line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        late_rank next;
        auto const [end, fault] = std::from_chars(line.data(), line.data() + line.size(), next.rank);
        if (fault != std::errc{} || end == line.data() + line.size() || *end != ' ') continue;
        if (next.rank < 0 || next.rank >= size) continue;
        next.dead = true;
        next.why = fmt::format("{}; {} gave it up", line.substr(static_cast<std::size_t>(end + 1 - line.data())), sender);
        late.push_back(std::move(next));
    }
    std::stable_sort(late.begin(), late.end(), [](auto const& a, auto const& b) { return a.rank < b.rank; });
    return late;
}

}  // namespace muster::detail
