#include "launch/settings/command_line.hpp"

#include <fmt/format.h>

#include "base/command/given_options.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/settings/foreign_options.hpp"

namespace muster {

namespace {

/// The options of the command: a flag has a second one that turns it off.
std::vector<option_shape> shapes_of(std::string_view command) {
    std::vector<option_shape> shapes;
    for (auto const& row : settings()) {
        if (!takes(command, row)) continue;
        bool const is_flag = row.kind == setting_kind::flag;
        shapes.push_back({std::string(row.name), takes_by_name_only(command, row) ? '\0' : row.letter, !is_flag});
        if (is_flag) shapes.push_back({fmt::format("no-{}", row.name), 0, false});
    }
    return shapes;
}

/// The commands that take an option of that name.
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
    std::vector<std::string> names;  // of two that are equally near the command's own comes first
    for (bool const by_name_only : {false, true})
        for (auto const& row : settings())
            if (takes(command, row) && takes_by_name_only(command, row) == by_name_only) {
                names.push_back(fmt::format("--{}", row.name));
                if (row.kind == setting_kind::flag) names.push_back(fmt::format("--no-{}", row.name));
            }
    auto const name = word.substr(0, word.find('='));
    if (command == "script" && (name == "--file" || name == "-F" || name == "--dry-run"))
        throw error(
            errc::usage,
            fmt::format("muster script takes no {}; muster submit --file FILE --dry-run prints the script of a job file", name));
    auto const takers = name.starts_with("--") ? takers_of(name.substr(2)) : std::string();
    if (!takers.empty()) throw error(errc::usage, fmt::format("muster {} takes no {}; use it with {}", command, name, takers));
    auto const near = nearest(name, names);
    throw error(errc::usage, fmt::format("unknown option '{}'{}; --help lists all", name,
                                         near ? fmt::format(", did you mean {}?", *near) : ""));
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
        if (auto const fault = fault_of(row, entry)) throw_fault(spelled, entry, *fault);
        known.entries.push_back(std::move(entry));
    }
}

}  // namespace

command_line parse_command_line(std::string_view command, std::vector<std::string> const& args) {
    auto rewritten = rewrite_foreign_options(command, args);
    command_line line;
    line.command = std::move(rewritten.command);
    line.notes = std::move(rewritten.notes);
    auto const read = read_option_words(shapes_of(command), rewritten.options);
    if (read.unknown) throw_unknown(command, *read.unknown);
    for (auto [name, value] : read.options) {
        bool const negated = find_setting(name, command) == nullptr;  // it can only be a flag's no-NAME
        if (negated) name = name.substr(3);
        auto const& row = *find_setting(name, command);
        auto const found = rewritten.spelled.find(name);
        auto const spelled = found == rewritten.spelled.end() ? fmt::format("--{}", name) : found->second;
        if (row.kind == setting_kind::flag) {
            add(line, command, name, negated ? "false" : "true", spelled);
            continue;
        }
        for (auto const& [meant, meant_value] : rewrite_foreign_value(row, value))
            add(line, command, meant, meant_value, spelled);
    }
    return line;
}

}  // namespace muster
