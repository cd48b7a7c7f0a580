#include "pmix/pmi1/pmi1_wire.hpp"

#include <algorithm>
#include <climits>

#include "base/text.hpp"

namespace muster::pmix {

std::optional<std::string_view> pmi1_message::find(std::string_view name) const noexcept {
    for (auto const& [key, value] : words)
        if (key == name) return value;
    return std::nullopt;
}

std::string_view pmi1_message::get_or(std::string_view name, std::string_view otherwise) const noexcept {
    return find(name).value_or(otherwise);
}

std::optional<int> pmi1_message::number(std::string_view name) const noexcept {
    auto const text = find(name);
    if (!text) return std::nullopt;
    auto const value = parse_integer(*text);
    if (!value || *value < INT_MIN || *value > INT_MAX) return std::nullopt;
    return static_cast<int>(*value);
}

std::optional<pmi1_message> parse_pmi1(std::string_view line) {
    if (line.size() >= pmi1_longest_line || line.find('\0') != std::string_view::npos) return std::nullopt;
    pmi1_message message;
    for (auto const word : split(line, ' ')) {
        if (word.empty()) continue;
        auto const equals = word.find('=');
        if (equals == std::string_view::npos || equals == 0) return std::nullopt;
        // An abort's message, since MPICH 4.2, is a sentence and comes last.
        if (word.substr(0, equals) == "message") {
            message.words.emplace_back("message", line.substr(static_cast<std::size_t>(word.data() - line.data()) + equals + 1));
            break;
        }
        message.words.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    }
    if (message.words.empty()) return std::nullopt;
    return message;
}

bool is_pmi1_word(std::string_view word, std::size_t longest) noexcept {
    return !word.empty() && word.size() <= longest &&
           std::none_of(word.begin(), word.end(), [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; });
}

std::optional<std::string> pmi1_line_buffer::next() {
    auto const end = bytes_.find('\n', taken_);
    if (end == std::string::npos) {
        bytes_.erase(0, taken_);
        taken_ = 0;
        return std::nullopt;
    }
    std::string line = bytes_.substr(taken_, end - taken_);
    taken_ = end + 1;
    return line;
}

bool pmi1_line_buffer::overflown() const noexcept {
    auto const end = bytes_.find('\n', taken_);
    return (end == std::string::npos ? bytes_.size() : end) - taken_ >= pmi1_longest_line;
}

}  // namespace muster::pmix
