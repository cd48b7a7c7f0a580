#include "launch/settings/command_line.hpp"

#include <fmt/format.h>

#include <boost/program_options.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/settings/foreign_options.hpp"

namespace muster {

namespace po = boost::program_options;

namespace {

/// The table as Boost.Program_options has it: a flag has a second option that turns it off.
po::options_description describe(std::string_view command) {
    po::options_description described;
    for (auto const& row : settings()) {
        if (!takes(command, row)) continue;
        std::string const name(row.name);
        auto const with_letter = row.letter == 0 ? name : fmt::format("{},{}", name, row.letter);
        if (row.kind != setting_kind::flag) {
            described.add_options()(with_letter.c_str(), po::value<std::string>());
            continue;
        }
        described.add_options()(with_letter.c_str(), po::bool_switch());
        described.add_options()(("no-" + name).c_str(), po::bool_switch());
    }
    return described;
}

/// The commands that do take an option of that name, as words.
std::string takers_of(std::string const& name) {
    for (auto const& row : settings())
        if (row.name == name) {
            std::vector<std::string> takers;
            for (auto const command : words_of(row.commands)) takers.push_back(fmt::format("muster {}", command));
            return join(takers, ", ");
        }
    return {};
}

[[noreturn]] void throw_unknown(std::string_view command, std::string const& word) {
    std::vector<std::string> names;
    for (auto const& row : settings())
        if (takes(command, row)) {
            names.push_back(fmt::format("--{}", row.name));
            if (row.kind == setting_kind::flag) names.push_back(fmt::format("--no-{}", row.name));
        }
    auto const name = word.substr(0, word.find('='));
    auto const takers = name.starts_with("--") ? takers_of(name.substr(2)) : std::string();
    if (!takers.empty()) throw error(errc::usage, fmt::format("muster {} takes no {}; it is for {}", command, name, takers));
    auto const near = nearest(name, names);
    throw error(errc::usage, fmt::format("unknown option '{}'{}; --help lists all", name,
                                         near ? fmt::format(", did you mean {}?", *near) : ""));
}

std::vector<po::option> parse(std::string_view command, std::vector<std::string> const& options) {
    auto const described = describe(command);
    try {
        auto const style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
        return po::command_line_parser(options).options(described).style(style).run().options;
    } catch (po::unknown_option const& e) {
        throw_unknown(command, e.get_option_name());
    } catch (po::error const& e) {
        throw error(errc::usage, fmt::format("{}; --help shows how", e.what()));
    }
}

void add(command_line& line, std::string_view command, std::string const& name, std::string const& value,
         std::string const& spelled) {
    auto const& row = *find_setting(name, command);
    auto& known = line.given[name];
    if (row.kind == setting_kind::flag) known.entries.clear();  // the last one holds
    if (row.kind != setting_kind::list && !known.entries.empty()) {
        if (known.entries.front() == value) return;
        throw error(errc::usage, fmt::format("--{} is given twice: {} and {}; give one", name, known.entries.front(), value));
    }
    known.spelled = spelled;
    for (auto& entry : entries_of(row, value, spelled, true)) {
        if (auto const fault = fault_of(row, entry))
            throw parse_error(spelled, entry, fault->offset, fault->message, errc::usage);
        known.entries.push_back(std::move(entry));
    }
}

}  // namespace

command_line parse_command_line(std::string_view command, std::vector<std::string> const& args) {
    auto own = rewrite_spellings(command, args);
    command_line line;
    line.command = std::move(own.command);
    for (auto const& option : parse(command, own.options)) {
        auto name = option.string_key;
        if (name.empty()) throw_unknown(command, option.original_tokens.empty() ? "" : option.original_tokens.front());  // "--=x"
        bool const negated = find_setting(name, command) == nullptr;  // it can only be a flag's no-NAME
        if (negated) name = name.substr(3);
        auto const& row = *find_setting(name, command);
        auto const found = own.spelled.find(name);
        auto const spelled = found == own.spelled.end() ? fmt::format("--{}", name) : found->second;
        if (row.kind == setting_kind::flag) {
            add(line, command, name, negated ? "false" : "true", spelled);
            continue;
        }
        for (auto const& [meant, value] : rewrite_value(row, option.value.empty() ? "" : option.value.front()))
            add(line, command, meant, value, spelled);
    }
    return line;
}

}  // namespace muster
