#include "base/command/given_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

constexpr std::size_t widest_synopsis = 27;

/// A word that stands for an option: "--name", "--name=value" or "-n…".
bool looks_like_option(std::string const& word) noexcept {
    return word.size() > 1 && word.front() == '-';
}

option_shape const* find_shape(std::span<option_shape const> known, std::string_view word) noexcept {
    bool const is_long = word.starts_with("--");
    auto const name = is_long ? word.substr(2, word.find('=') == word.npos ? word.npos : word.find('=') - 2) : word.substr(1, 1);
    for (auto const& shape : known)
        if (is_long ? shape.name == name : shape.letter != 0 && name.front() == shape.letter) return &shape;
    return nullptr;
}

/// Reads options one after the other; `at_` is the next word.
class option_reader {
  public:
    option_reader(std::span<option_shape const> known, std::vector<std::string> const& args) : known_(known), args_(args) {}

    option_words read() {
        while (at_ < args_.size() && !result_.unknown) {
            auto const& word = args_[at_++];
            if (word == "--") {
                result_.before_dashes = result_.words.size();
                result_.words.insert(result_.words.end(), args_.begin() + static_cast<std::ptrdiff_t>(at_), args_.end());
                return std::move(result_);
            }
            if (!looks_like_option(word))
                result_.words.push_back(word);
            else if (word.starts_with("--"))
                read_long(word);
            else
                read_short(word);
        }
        result_.before_dashes = result_.words.size();
        return std::move(result_);
    }

  private:
    void read_long(std::string const& word) {
        auto const* shape = find_shape(known_, word);
        if (shape == nullptr) {
            result_.unknown = word;
            return;
        }
        auto const equals = word.find('=');
        if (equals == std::string::npos)
            result_.options.emplace_back(shape->name, shape->takes_value ? next_value("--" + shape->name) : std::string());
        else if (shape->takes_value)
            result_.options.emplace_back(shape->name, word.substr(equals + 1));
        else
            throw error(errc::usage, fmt::format("--{} takes no value, but '{}' gives it one; leave out '{}'", shape->name, word,
                                                 word.substr(equals)));
    }

    /// "-n4", "-n 4", "-lv".
    void read_short(std::string const& word) {
        for (std::size_t i = 1; i < word.size(); ++i) {
            auto const* shape = find_shape(known_, std::string{'-', word[i]});
            if (shape == nullptr) {
                result_.unknown = i == 1 ? word : fmt::format("-{}", word[i]);
                return;
            }
            if (!shape->takes_value) {
                result_.options.emplace_back(shape->name, std::string());
                continue;
            }
            bool const adjacent = i + 1 < word.size();
            result_.options.emplace_back(shape->name, adjacent ? word.substr(i + 1) : next_value(fmt::format("-{}", word[i])));
            return;
        }
    }

    std::string next_value(std::string const& option) {
        bool const missing =
            at_ == args_.size() || (looks_like_option(args_[at_]) && (args_[at_] == "--" || find_shape(known_, args_[at_])));
        if (missing) throw error(errc::usage, fmt::format("{} has no value; give it one, or see --help", option));
        return args_[at_++];
    }

    std::span<option_shape const> known_;
    std::vector<std::string> const& args_;
    std::size_t at_ = 0;
    option_words result_;
};

}  // namespace

option_words read_option_words(std::span<option_shape const> known, std::vector<std::string> const& args) {
    return option_reader(known, args).read();
}

given_options::given_options(std::string command, std::span<option_row const> rows, std::size_t most_words,
                             std::vector<std::string> const& args, bool takes_program)
    : command_(std::move(command)), rows_(rows) {
    std::vector<option_shape> known{{"help", 'h', false}};
    for (auto const& row : rows) known.push_back({std::string(row.name), row.letter, !row.argument.empty()});
    auto read = read_option_words(known, args);
    if (read.unknown) {
        std::vector<std::string> names;
        for (auto const& shape : known) names.push_back("--" + shape.name);
        auto const near = nearest(read.unknown->substr(0, read.unknown->find('=')), names);
        throw error(errc::usage, fmt::format("{}: unknown option '{}'{}; --help lists all", command_, *read.unknown,
                                             near ? fmt::format(", did you mean {}?", *near) : ""));
    }
    for (auto& [name, value] : read.options) {
        if (has(name) && !value.empty() && !find(name)->many)
            throw error(errc::usage, fmt::format("{}: --{} is given twice; give it once", command_, name));
        given_.emplace_back(std::move(name), std::move(value));
    }
    words_ = std::move(read.words);
    if (takes_program) {
        program_.assign(words_.begin() + static_cast<std::ptrdiff_t>(read.before_dashes), words_.end());
        words_.resize(read.before_dashes);
    }
    if (words_.size() > most_words)
        throw error(errc::usage,
                    fmt::format("{}: unexpected word '{}'; --help shows what it takes", command_, words_[most_words]));
}

option_row const* given_options::find(std::string_view name) const noexcept {
    auto const found = std::find_if(rows_.begin(), rows_.end(), [&](auto const& row) { return row.name == name; });
    return found == rows_.end() ? nullptr : &*found;
}

bool given_options::has(std::string_view name) const {
    return std::any_of(given_.begin(), given_.end(), [&](auto const& each) { return each.first == name; });
}

std::string given_options::text(std::string_view name) const {
    for (auto const& [known, value] : given_)
        if (known == name) return value;
    auto const* row = find(name);
    expect(row != nullptr, fmt::format("a row for --{} in the options of {}", name, command_));
    return std::string(row->fallback);
}

std::vector<std::string> given_options::all(std::string_view name) const {
    std::vector<std::string> values;
    for (auto const& [known, value] : given_)
        if (known == name) values.push_back(value);
    return values;
}

std::string given_options::needed(std::string_view name) const {
    auto value = text(name);
    if (value.empty())
        throw error(errc::usage, fmt::format("{}: --{} is missing; give --{} {}", command_, name, name, find(name)->argument));
    return value;
}

std::int64_t given_options::integer(std::string_view name, std::int64_t least, std::int64_t most) const {
    auto const value = needed(name);
    auto const number = parse_integer(value);
    if (!number || *number < least || *number > most)
        throw error(errc::usage, fmt::format("--{}: '{}' is no whole number from {} to {}", name, value, least, most));
    return *number;
}

double given_options::real(std::string_view name) const {
    auto const value = needed(name);
    auto const number = parse_real(value);
    if (!number) throw error(errc::usage, fmt::format("--{}: '{}' is no number", name, value));
    return *number;
}

std::string synopsis_of(option_row const& row) {
    auto shown = row.letter == 0 ? fmt::format("--{}", row.name) : fmt::format("-{}, --{}", row.letter, row.name);
    if (!row.argument.empty()) shown += fmt::format(" {}", row.argument);
    return shown;
}

std::string options_help(std::span<option_row const> rows) {
    std::size_t width = 0;
    for (auto const& row : rows) width = std::min(widest_synopsis, std::max(width, synopsis_of(row).size() + 2));
    std::string lines;
    for (auto const& row : rows)
        lines += fmt::format("  {:{}}{}{}\n", synopsis_of(row), width, row.help,
                             row.fallback.empty() ? "" : fmt::format(" [{}]", row.fallback));
    return lines;
}

}  // namespace muster
