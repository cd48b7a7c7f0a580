#include "base/command/given_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/cmdline.hpp>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/value_semantic.hpp>

#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace {

namespace po = boost::program_options;

constexpr std::size_t widest_synopsis = 25;

/// A word that stands for an option: "--name", "--name=value" or "-n…".
bool looks_like_option(std::string const& word) noexcept {
    return word.size() > 1 && word.front() == '-';
}

po::options_description table_of(std::span<option_shape const> known) {
    po::options_description table;
    auto add = table.add_options();
    for (auto const& shape : known)
        add((shape.letter == 0 ? shape.name : fmt::format("{},{}", shape.name, shape.letter)).c_str(),
            new po::untyped_value(!shape.takes_value));
    return table;
}

/// The option that a word begins with, or nullptr.
po::option_description const* find_option(po::options_description const& table, std::string const& word) {
    if (!looks_like_option(word)) return nullptr;
    auto const name = word.starts_with("--") ? word.substr(2, word.find('=') - 2) : word.substr(0, 2);
    return name.empty() ? nullptr : table.find_nothrow(name, false);
}

/// Boost refuses "--name=", which gives an empty value.
std::vector<po::option> read_empty_value(std::vector<std::string>& args) {
    auto const word = args.front();
    if (!word.starts_with("--") || word.find('=') + 1 != word.size()) return {};
    po::option option(word.substr(2, word.size() - 3), {""});
    option.original_tokens = {word};
    args.erase(args.begin());
    return {option};
}

[[noreturn]] void throw_no_value(po::options_description const& table, std::string const& name,
                                 std::vector<std::string> const& args) {
    auto const long_form = "--" + name;
    auto const spelled = std::ranges::find(args, long_form) != args.end()
                             ? long_form
                             : table.find(name, false).canonical_display_name(po::command_line_style::allow_dash_for_short);
    throw_error(errc::usage, "{} has no value; give it one, or see --help", spelled);
}

/// Returns "-x" of "-fx", where f is known.
std::string unknown_part(po::options_description const& table, std::string const& word) {
    if (word.starts_with("--") || find_option(table, word) == nullptr) return word;
    auto const letter = std::ranges::find_if(word.begin() + 2, word.end(), [&](char c) {
        return find_option(table, {'-', c}) == nullptr;
    });
    return letter == word.end() ? word : std::string{'-', *letter};
}

[[noreturn]] void throw_fault(po::options_description const& table, po::invalid_command_line_syntax const& fault,
                              std::vector<std::string> const& args) {
    auto const option = fault.get_option_name();
    auto const word = std::ranges::find_if(args, [&](auto const& each) { return each.starts_with(option + "="); });
    if (fault.kind() == po::invalid_command_line_syntax::missing_parameter || word == args.end())
        throw_no_value(table, option.substr(2), args);
    throw_error(errc::usage, "{} takes no value, but '{}' gives it one; leave out '{}'", option, *word,
                word->substr(option.size()));
}

/// Refuses a program with options whose "--" was forgotten: the first word too many, if it stands before what is unknown.
void refuse_program_without_dashes(std::string const& command, std::span<option_shape const> known,
                                   std::vector<std::string> const& args, option_words const& read, std::size_t most_words) {
    if (std::ranges::find(args, "--") != args.end()) return;
    auto words = read.words;
    if (read.unknown) {
        auto const at = std::ranges::find_if(args, [&](auto const& each) { return each.starts_with(*read.unknown); });
        words = read_option_words(known, {args.begin(), at}).words;
    }
    if (words.size() > most_words)
        throw_error(errc::usage, "{}: unexpected word '{}'; write -- before the program: -- {} …; --help shows the options",
                    command, words[most_words], shell_quote(words[most_words]));
}

}  // namespace

option_words read_option_words(std::span<option_shape const> known, std::vector<std::string> const& args) {
    using namespace po::command_line_style;
    auto const table = table_of(known);
    auto const dashes = std::ranges::find(args, "--");
    std::vector<std::string> const before(args.begin(), dashes);
    option_words result;
    try {
        po::command_line_parser parser(before);
        parser.options(table).style(unix_style & ~allow_guessing).extra_style_parser(read_empty_value);
        for (auto const& each : parser.run().options) {
            if (each.string_key.empty()) {
                result.words.push_back(each.original_tokens.front());
                if (looks_like_option(result.words.back())) result.unknown = result.words.back();  // "--=value"
                continue;
            }
            // Boost takes an option for the value of the one before it.
            if (each.original_tokens.size() > 1 && find_option(table, each.original_tokens[1]) != nullptr)
                throw_no_value(table, each.string_key, before);
            result.options.emplace_back(each.string_key, each.value.empty() ? std::string() : each.value.front());
        }
    } catch (po::unknown_option const& fault) {
        result.unknown = unknown_part(table, fault.get_option_name());
    } catch (po::invalid_command_line_syntax const& fault) {
        throw_fault(table, fault, before);
    }
    result.before_dashes = result.words.size();
    if (dashes != args.end()) result.words.insert(result.words.end(), dashes + 1, args.end());
    return result;
}

given_options::given_options(std::string command, std::span<option_row const> rows, std::size_t most_words,
                             std::vector<std::string> const& args, bool takes_program)
    : command_(std::move(command)), rows_(rows) {
    std::vector<option_shape> known{{"help", 'h', false}};
    for (auto const& row : rows) known.push_back({std::string(row.name), row.letter, !row.argument.empty()});
    auto read = read_option_words(known, args);
    if (takes_program) refuse_program_without_dashes(command_, known, args, read, most_words);
    if (read.unknown) {
        std::vector<std::string> names;
        for (auto const& shape : known) names.push_back("--" + shape.name);
        auto const near = nearest(read.unknown->substr(0, read.unknown->find('=')), names);
        throw_error(errc::usage, "{}: unknown option '{}'{}; --help lists all", command_, *read.unknown,
                    near ? fmt::format(", did you mean {}?", *near) : "");
    }
    for (auto& [name, value] : read.options) {
        if (has(name) && !value.empty() && !find(name)->many)
            throw_error(errc::usage, "{}: --{} is given twice; give it once", command_, name);
        given_.emplace_back(std::move(name), std::move(value));
    }
    words_ = std::move(read.words);
    if (takes_program) {
        program_.assign(words_.begin() + static_cast<std::ptrdiff_t>(read.before_dashes), words_.end());
        words_.resize(read.before_dashes);
    }
    if (words_.size() > most_words)
        throw_error(errc::usage, "{}: unexpected word '{}'; --help shows what it takes", command_, words_[most_words]);
}

option_row const* given_options::find(std::string_view name) const noexcept {
    auto const found = std::ranges::find_if(rows_, [&](auto const& row) { return row.name == name; });
    return found == rows_.end() ? nullptr : &*found;
}

bool given_options::has(std::string_view name) const {
    return std::ranges::any_of(given_, [&](auto const& each) { return each.first == name; });
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
    if (value.empty()) throw_error(errc::usage, "{}: --{} is missing; give --{} {}", command_, name, name, find(name)->argument);
    return value;
}

std::int64_t given_options::integer(std::string_view name, std::int64_t least, std::int64_t most) const {
    auto const value = needed(name);
    auto const number = parse_integer(value);
    if (!number || *number < least || *number > most)
        throw_error(errc::usage, "--{}: '{}' is no whole number from {} to {}", name, value, least, most);
    return *number;
}

double given_options::real(std::string_view name) const {
    auto const value = needed(name);
    auto const number = parse_real(value);
    if (!number) throw_error(errc::usage, "--{}: '{}' is no number", name, value);
    return *number;
}

std::string synopsis_of(option_row const& row) {
    auto shown = row.letter == 0 ? fmt::format("--{}", row.name) : fmt::format("-{}, --{}", row.letter, row.name);
    if (!row.argument.empty()) shown += fmt::format(" {}", row.argument);
    return shown;
}

std::string options_help(std::span<option_row const> rows) {
    std::size_t width = 0;
    for (auto const& row : rows) width = std::min(widest_synopsis, std::max(width, synopsis_of(row).size()));
    std::string lines;
    for (auto const& row : rows)
        lines += fmt::format("  {:{}}  {}{}\n", synopsis_of(row), width, row.help,
                             row.fallback.empty() ? "" : fmt::format(" [{}]", row.fallback));
    return lines;
}

}  // namespace muster
