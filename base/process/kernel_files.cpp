#include "base/process/kernel_files.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"

namespace muster {

std::optional<std::uint64_t> parse_count(std::string_view text) noexcept {
    text = trim(text);
    text = text.substr(0, text.find_first_of(" \n"));
    std::uint64_t count = 0;
    auto const [end, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
    return fault == std::errc{} && end == text.data() + text.size() ? std::optional(count) : std::nullopt;
}

std::optional<std::uint64_t> count_in(std::string_view text, std::string_view name) noexcept {
    while (!text.empty()) {
        auto line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (!line.starts_with(name)) continue;
        line.remove_prefix(name.size());
        if (line.starts_with(':')) line.remove_prefix(1);
        if (line.starts_with(' ') || line.starts_with('\t')) return parse_count(line);
    }
    return std::nullopt;
}

}  // namespace muster
