#include "launch/settings/toml_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace {

constexpr std::size_t longest_text_bytes = std::size_t{1} << 20;

/// Returns the byte offset of a place that is given by line and UTF-8 character.
std::size_t offset_of(std::string_view text, toml::source_position where) noexcept {
    std::size_t offset = 0;
    for (toml::source_index line = 1; line < where.line && offset < text.size(); ++line) {
        auto const end = text.find('\n', offset);
        if (end == std::string_view::npos) break;
        offset = end + 1;
    }
    auto const is_tail = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80; };
    for (toml::source_index column = 1; column < where.column && offset < text.size() && text[offset] != '\n'; ++column) do
            ++offset;
        while (offset < text.size() && is_tail(offset));
    return offset;
}

constexpr std::size_t longest_key_bytes = 256;
constexpr std::size_t most_listed_keys = 12;
constexpr int most_levels = 32;  ///< the parser and its tables' destructors recurse once for each level

/// Checks the keys and brackets of any text, even if it is no TOML: throws parse_error if they are deeper than most_levels.
class depth_check {
  public:
    depth_check(std::string_view origin, std::string_view text) : origin_(origin), text_(text) {}

    void run() {
        while (at_ < text_.size()) {
            char const c = text_[at_];
            if (c == '"' || c == '\'')
                skip_text(c);
            else if (c == '#')
                at_ = std::min(text_.find('\n', at_), text_.size());
            else
                take(c), ++at_;
        }
    }

  private:
    void take(char c) {
        if (c == '.' && ++parts_ > most_levels) refuse(fmt::format("a key of more than {} parts", most_levels));
        if ((c == '[' || c == '{') && ++brackets_ > most_levels) refuse(fmt::format("nested deeper than {} levels", most_levels));
        if (c == ']' || c == '}') brackets_ = std::max(brackets_ - 1, 0);
        if (std::string_view("[]{}=,\n").find(c) != std::string_view::npos) parts_ = 1;
    }

    /// An unclosed text ends with its line or, with three quotes, with the file; the parser reports it.
    void skip_text(char quote) {
        auto const rest = text_.substr(at_);
        std::size_t const quotes = rest.size() > 2 && rest[1] == quote && rest[2] == quote ? 3 : 1;
        for (at_ += quotes; at_ < text_.size(); ++at_) {
            if (quotes == 1 && text_[at_] == '\n') return;
            if (quote == '"' && text_[at_] == '\\')
                ++at_;
            else if (text_.substr(at_, quotes) == std::string(quotes, quote))
                break;
        }
        for (at_ += quotes; quotes == 3 && at_ < text_.size() && text_[at_] == quote;) ++at_;  // """a quote""""
    }

    [[noreturn]] void refuse(std::string_view what) const {
        throw parse_error(origin_, text_, at_, fmt::format("{}; write fewer", what), errc::config);
    }

    std::string_view origin_, text_;
    std::size_t at_ = 0;
    int parts_ = 1, brackets_ = 0;
};

std::string_view name_of(toml::node_type type) noexcept {
    switch (type) {
        case toml::node_type::table: return "a table";
        case toml::node_type::array: return "a list";
        case toml::node_type::string: return "a text";
        case toml::node_type::integer: return "a whole number";
        case toml::node_type::floating_point: return "a real number";
        case toml::node_type::boolean: return "true or false";
        case toml::node_type::date: return "a date";
        case toml::node_type::time: return "a time of day";
        case toml::node_type::date_time: return "a date with a time";
        case toml::node_type::none: break;
    }
    return "nothing";
}

/// Returns "gpus-per-node" for "Gpus_Per_Node" if the known names have hyphens, so that a search for the nearest name finds it.
std::string as_written_here(std::string_view key, std::vector<std::string> const& names) {
    auto const has = [&](char c) {
        return std::ranges::any_of(names, [&](auto const& name) { return name.find(c) != std::string::npos; });
    };
    bool const hyphens = has('-') && !has('_'), underscores = has('_') && !has('-');
    std::string word(key);
    for (char& c : word)
        if (c == '_' && hyphens)
            c = '-';
        else if (c == '-' && underscores)
            c = '_';
        else if (c >= 'A' && c <= 'Z')
            c = static_cast<char>(c - 'A' + 'a');
    return word;
}

}  // namespace

toml_document toml_document::parse(std::string_view text, std::string_view origin) {
    if (text.size() > longest_text_bytes)
        throw_error(errc::config, "{}: {} bytes are too many for a settings file; make it at most 1 MiB", origin, text.size());
    depth_check(origin, text).run();
    try {
        return {std::string(origin), std::string(text), toml::parse(text)};
    } catch (toml::parse_error const& e) {
        throw parse_error(origin, text, offset_of(text, e.source().begin), e.description(), errc::config);
    }
}

toml_reader::toml_reader(toml_document const& document, toml::table const& table, std::string path,
                         std::span<std::string_view const> known, std::string_view listed_by)
    : toml_reader(document, table, std::move(path)) {
    std::vector<std::string> const names(known.begin(), known.end());
    // Goes through the text in order, so that the first mistake is shown first.
    std::vector<toml::key const*> keys;
    for (auto const& [key, value] : table_) keys.push_back(&key);
    std::ranges::sort(keys, [](auto* a, auto* b) { return a->source().begin < b->source().begin; });
    for (auto const* key : keys) {
        if (std::ranges::find(names, key->str()) != names.end()) continue;
        auto const all =
            names.size() > most_listed_keys ? fmt::format("{} all keys", listed_by) : "known here: " + join(names, ", ");
        if (key->str().size() > longest_key_bytes)
            refuse_key(key->str(), fmt::format("an unknown key of {} bytes, which begins '{}'; {}", key->str().size(),
                                               key->str().substr(0, 32), all));
        auto const near = nearest(as_written_here(key->str(), names), names);
        refuse_key(key->str(), near ? fmt::format("unknown key '{}'; did you mean '{}'?", key->str(), *near)
                                    : fmt::format("unknown key '{}'; {}", key->str(), all));
    }
}

void toml_reader::refuse_at(toml::source_position where, std::string_view key, std::string_view message) const {
    throw toml_fault(document_, offset_of(document_.text, where),
                     path_.empty() ? std::string(message) : fmt::format("{}: {}", path_, message), table_, key);
}

void toml_reader::refuse(std::string_view key, std::string_view message) const {
    auto const* node = table_.get(key);
    refuse_at(node ? node->source().begin : table_.source().begin, key, message);
}

void toml_reader::refuse_key(std::string_view key, std::string_view message) const {
    auto const found = table_.find(key);
    refuse_at(found == table_.end() ? table_.source().begin : found->first.source().begin, key, message);
}

std::string toml_reader::checked(toml::node const& node, std::string_view key) const {
    auto const* text = node.as_string();
    if (!text) refuse_at(node.source().begin, key, fmt::format("'{}' must be a text, not {}", key, name_of(node.type())));
    if (text->get().empty()) refuse_at(node.source().begin, key, fmt::format("'{}' is empty; leave it out instead", key));
    for (char const c : text->get())
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            refuse_at(node.source().begin, key,
                      fmt::format("'{}' holds a control character, such as a line break; remove it", key));
    return text->get();
}

std::optional<std::string> toml_reader::text(std::string_view key) const {
    auto const* node = table_.get(key);
    return node ? std::optional(checked(*node, key)) : std::nullopt;
}

std::string toml_reader::required_text(std::string_view key) const {
    auto value = text(key);
    if (!value) refuse(key, fmt::format("'{}' is missing; add it", key));
    return *value;
}

std::optional<int> toml_reader::integer(std::string_view key, int least, int most) const {
    auto const* node = table_.get(key);
    if (!node) return std::nullopt;
    auto const* number = node->as_integer();
    if (!number) refuse(key, fmt::format("'{}' must be a whole number, not {}", key, name_of(node->type())));
    if (number->get() < least || number->get() > most)
        refuse(key, fmt::format("'{}' is {}; it must be from {} to {}", key, number->get(), least, most));
    return static_cast<int>(number->get());
}

bool toml_reader::flag(std::string_view key, bool otherwise) const {
    auto const* node = table_.get(key);
    if (!node) return otherwise;
    if (!node->is_boolean()) refuse(key, fmt::format("'{}' must be true or false, not {}", key, name_of(node->type())));
    return node->as_boolean()->get();
}

std::optional<duration> toml_reader::time(std::string_view key) const {
    auto const value = text(key);
    if (!value) return std::nullopt;
    try {
        return parse_duration(*value, key);
    } catch (parse_error const&) {
        refuse(key, fmt::format("'{}' is no duration; write \"1:30:00\", \"90min\" or \"3h\"", key));
    }
}

std::optional<std::string> toml_reader::date(std::string_view key) const {
    auto const* node = table_.get(key);
    if (!node) return std::nullopt;
    if (!node->is_date()) refuse(key, fmt::format("'{}' must be a date such as 2026-01-31, not {}", key, name_of(node->type())));
    auto const day = node->as_date()->get();
    return fmt::format("{:04}-{:02}-{:02}", day.year, day.month, day.day);
}

std::vector<std::string> toml_reader::texts(std::string_view key) const {
    std::vector<std::string> values;
    auto const* node = table_.get(key);
    if (!node) return values;
    if (!node->is_array()) refuse(key, fmt::format("'{}' must be a list of texts, not {}", key, name_of(node->type())));
    for (auto const& item : *node->as_array()) values.push_back(checked(item, key));
    return values;
}

std::vector<int> toml_reader::integers(std::string_view key, int least, int most) const {
    std::vector<int> values;
    auto const* node = table_.get(key);
    if (!node) return values;
    if (!node->is_array()) refuse(key, fmt::format("'{}' must be a list of whole numbers, not {}", key, name_of(node->type())));
    for (auto const& item : *node->as_array()) {
        auto const* number = item.as_integer();
        if (!number)
            refuse_at(item.source().begin, key, fmt::format("'{}' must hold whole numbers, not {}", key, name_of(item.type())));
        if (number->get() < least || number->get() > most)
            refuse_at(item.source().begin, key,
                      fmt::format("'{}' holds {}; it must be from {} to {}", key, number->get(), least, most));
        values.push_back(static_cast<int>(number->get()));
    }
    return values;
}

std::string toml_reader::choice(std::string_view key, std::span<std::string_view const> choices) const {
    auto const value = text(key);
    if (!value) return std::string(choices.front());
    if (std::ranges::find(choices, *value) == choices.end()) {
        std::vector<std::string> const names(choices.begin(), choices.end());
        refuse(key, fmt::format("'{}' must be one of {}", key, join(names, ", ")));
    }
    return *value;
}

toml::table const* toml_reader::table(std::string_view key) const {
    auto const* node = table_.get(key);
    if (!node) return nullptr;
    if (!node->is_table())
        refuse(key, fmt::format("'{}' must be a table, written [{}], not {}", key, key, name_of(node->type())));
    return node->as_table();
}

std::vector<toml::table const*> toml_reader::tables(std::string_view key) const {
    std::vector<toml::table const*> found;
    auto const* node = table_.get(key);
    if (!node) return found;
    if (!node->is_array())
        refuse(key, fmt::format("'{}' must be tables, written [[{}]], not {}", key, key, name_of(node->type())));
    if (node->as_array()->size() > most_tables)
        refuse(key, fmt::format("'{}' has {} tables; it must have at most {}", key, node->as_array()->size(), most_tables));
    for (auto const& item : *node->as_array()) {
        if (!item.is_table())
            refuse_at(item.source().begin, key, fmt::format("'{}' must hold tables, not {}", key, name_of(item.type())));
        found.push_back(item.as_table());
    }
    return found;
}

}  // namespace muster
