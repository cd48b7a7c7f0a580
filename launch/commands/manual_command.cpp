#include "base/command/manual.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/commands/commands.hpp"
#include "launch/help/help.hpp"

namespace muster {

namespace {

std::string other_spellings(setting const& row) {
    std::vector<std::string> all;
    for (auto const alias : words_of(row.aliases))
        all.push_back(alias.front() == '-' ? std::string(alias) : fmt::format("--{}", alias));
    return all.empty() ? std::string() : fmt::format(" Also {}.", join(all, ", "));
}

std::string option(setting const& row) {
    std::string text(row.help);
    if (row.kind != setting_kind::flag && !row.fallback.empty()) text += fmt::format(" [{}]", row.fallback);
    return option_paragraph(row.letter, fmt::format("{}{}", row.is_on_by_default() ? "no-" : "", row.name), row.argument,
                            text + "." + other_spellings(row));
}

std::string options(std::string_view command) {
    std::string page;
    for (auto const group : setting_groups()) {
        std::string rows;
        for (auto const& row : settings())
            if (row.group == group && is_listed(command, row)) rows += option(row);
        if (!rows.empty()) page += fmt::format("\n## {}\n{}", to_string(group), rows);
    }
    return page.empty() ? page : "# OPTIONS\n" + page + "\n";
}

constexpr std::string_view settings_text =
    "Each option is also a variable (--ranks-per-node is MUSTER_RANKS_PER_NODE) and a key of a settings file. The first of these "
    "that has it holds: command line; environment; ./muster.toml; the user's settings file; the table [settings] of the site "
    "file that --site names; built in. A list replaces a weaker list. muster config show tells each value and where it came "
    "from.";

/// Returns whether the command is a separate program with a separate man page: muster-stage.
bool is_program(command_row const& row) noexcept {
    return row.manual.empty();
}

std::string overview_page() {
    auto page = page_head("muster", "one rank per GPU") + "# SYNOPSIS\n\n**muster** *COMMAND* [*options*]\n\n# COMMANDS\n";
    for (auto const& row : commands())
        if (!row.hidden) page += fmt::format("\n**muster {}**\n: {}\n", row.name, markdown_of(row.summary));
    return page + "\n";
}

std::string command_page(command_row const& row) {
    auto page = page_head(fmt::format("muster-{}", row.name), row.summary);
    page += fmt::format("# SYNOPSIS\n\n**muster {}** {}\n\n# DESCRIPTION\n\n{}\n\n", row.name, markdown_of(row.synopsis),
                        markdown_of(row.manual));
    page += options(row.name);
    return row.examples.empty() ? page : page + "# EXAMPLES\n" + example_block(row.examples);
}

}  // namespace

std::string manual_page(std::string_view command) {
    auto const* row = command.empty() ? nullptr : find_command(command);
    if (!command.empty() && (row == nullptr || is_program(*row)))
        throw_error(errc::usage, "muster has no man page of a command '{}'; muster --help lists the commands", command);
    std::vector<std::string> pages{"muster"};
    for (auto const& each : commands())
        if (!each.hidden) pages.push_back(fmt::format("muster-{}", each.name));
    auto page = row == nullptr ? overview_page() : command_page(*row);
    page += fmt::format("# SETTINGS\n\n{}\n\n", markdown_of(settings_text));
    return page + page_end(fmt::format("muster {}", row == nullptr ? "overview" : command), pages,
                           row == nullptr ? "muster" : fmt::format("muster-{}", command));
}

int manual_command(std::vector<std::string> const& args, environment const&) {
    if (args.size() > 1) throw error(errc::usage, "muster manual takes one command");
    fmt::print("{}", manual_page(args.empty() ? "" : args.front()));
    return 0;
}

}  // namespace muster
