#include "launch/commands/commands.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/manual/man_page.hpp"
#include "base/manual/manual_section.hpp"
#include "base/manual/roff.hpp"
#include "base/text.hpp"
#include "launch/help/command_table.hpp"
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
        if (!rows.empty()) page += fmt::format(".SS \"{}\"\n{}", roff_quote(to_string(group)), rows);
    }
    return page.empty() ? page : ".SH OPTIONS\n" + page;
}

constexpr std::string_view settings_text =
    "Each option is also a variable (--ranks-per-node is "
    "MUSTER_RANKS_PER_NODE) and a key of a settings file. The first of these "
    "that has it holds: command line; environment; ./muster.toml; the user's "
    "settings file; the table [settings] of the site file "
    "that --site names; built in. A list replaces a weaker list. muster config "
    "show tells each value and where it came from.";

/// A program of its own, with a man page of its own: muster-stage.
bool is_program(command_row const& row) noexcept {
    return row.manual.empty();
}

std::string overview_page() {
    auto page = page_head("muster", "one rank per GPU");
    page += ".SH SYNOPSIS\n" + roff_bold("muster") + " \\fICOMMAND\\fR [\\fIoptions\\fR]\n.SH COMMANDS\n";
    for (auto const& row : commands())
        if (!row.hidden)
            page += fmt::format(".TP\n{}\n{}\n", roff_bold(fmt::format("muster {}", row.name)), roff_quote(row.summary));
    return page;
}

std::string command_page(command_row const& row) {
    auto page = page_head(fmt::format("muster-{}", row.name), row.summary);
    page += fmt::format(".SH SYNOPSIS\n{} {}\n", roff_bold(fmt::format("muster {}", row.name)), roff_quote(row.synopsis));
    page += ".SH DESCRIPTION\n" + roff_paragraphs(row.manual) + options(row.name);
    return row.examples.empty() ? page : page + ".SH EXAMPLES\n" + example_block(row.examples);
}

std::string all_others(std::string_view command) {
    std::vector<std::string> pages{"muster"};
    for (auto const& row : commands())
        if (!row.hidden) pages.push_back(fmt::format("muster-{}", row.name));
    return see_also(pages, command.empty() ? "muster" : fmt::format("muster-{}", command));
}

}  // namespace

std::string man_page(std::string_view command) {
    std::string page =
        ".\\\" Written by muster man from its tables of commands "
        "and settings, and from docs/environment.md.\n";
    if (command.empty()) {
        page += overview_page();
    } else {
        auto const* row = find_command(command);
        if (row == nullptr || (row->hidden && is_program(*row)))
            throw error(errc::usage, fmt::format("no command '{}', and so no man page; muster "
                                                 "--help lists the commands",
                                                 command));
        if (is_program(*row))
            throw error(errc::usage, fmt::format("muster-{0} has its own man page; write: muster-{0} man", command));
        page += command_page(*row);
    }
    page += ".SH SETTINGS\n" + roff_paragraphs(settings_text);
    return page + manual_sections(fmt::format("muster {}", command.empty() ? "overview" : command)) + all_others(command);
}

int man_command(std::vector<std::string> const& args, environment const&) {
    auto const given = resolve_settings("man", args, {});
    if (print_help_if_asked("man", given)) return 0;
    if (given.command.size() > 1) throw error(errc::usage, "muster man takes one command");
    fmt::print("{}", man_page(given.command.empty() ? "" : given.command.front()));
    return 0;
}

}  // namespace muster
