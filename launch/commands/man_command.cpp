#include "launch/commands/man_command.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "launch/help/command_table.hpp"
#include "launch/help/help.hpp"

namespace muster {

namespace {

constexpr unsigned ellipsis = 0x2026;  // which a terminal without UTF-8 cannot show

/// A code point of UTF-8 at `at`, which is moved behind it; 0xfffd for bytes that are none.
unsigned next_code_point(std::string_view text, std::size_t& at) {
    auto const first = static_cast<unsigned char>(text[at++]);
    int const tail = first < 0xc0 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    if (tail == 0 || at + static_cast<std::size_t>(tail) > text.size()) return 0xfffd;
    unsigned value = first & (0x3fu >> tail);
    for (int i = 0; i < tail; ++i) value = (value << 6) | (static_cast<unsigned char>(text[at++]) & 0x3fu);
    return value;
}

std::string paragraphs(std::string_view text) {
    std::string page;
    for (std::size_t at = 0; at < text.size();) {
        auto const end = std::min(text.find("\n\n", at), text.size());
        page += fmt::format("{}{}\n", page.empty() ? "" : ".PP\n", roff_quote(text.substr(at, end - at)));
        at = end + 2;
    }
    return page;
}

std::string bold(std::string_view text) {
    return fmt::format("\\fB{}\\fR", roff_quote(text));
}

std::string other_spellings(setting const& row) {
    std::vector<std::string> all;
    for (auto const alias : words_of(row.aliases))
        all.push_back(alias.front() == '-' ? std::string(alias) : fmt::format("--{}", alias));
    return all.empty() ? std::string() : fmt::format(" Also {}.", join(all, ", "));
}

std::string option(setting const& row) {
    auto const value = row.argument.empty() ? std::string() : fmt::format(" \\fI{}\\fR", roff_quote(row.argument));
    auto const name = fmt::format("--{}{}", row.is_on_by_default() ? "no-" : "", row.name);
    std::string text(row.help);
    if (row.kind != setting_kind::flag && !row.fallback.empty()) text += fmt::format(" [{}]", row.fallback);
    text += "." + other_spellings(row);
    return fmt::format(".TP\n{}{}{}\n{}\n", row.letter == 0 ? "" : bold(fmt::format("-{}", row.letter)) + ", ", bold(name), value,
                       roff_quote(text));
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

std::string example_lines(std::string_view examples) {
    return examples.empty() ? std::string() : fmt::format(".SH EXAMPLES\n.EX\n{}.EE\n", roff_quote(examples));
}

constexpr std::string_view settings_text =
    "A setting is looked for on the command line, in the environment (MUSTER_NAME: --ranks-per-node is MUSTER_RANKS_PER_NODE), "
    "in "
    "./muster.toml, in the user's file ($XDG_CONFIG_HOME or ~/.config, then /muster/muster.toml) and in the table [settings] of "
    "the site "
    "that --site names; the first that has it holds. Keys are named as the options; a list replaces a weaker one. muster config "
    "show tells "
    "each value and where it came from.";

constexpr std::string_view exit_text =
    "0 done. 2 wrong usage or a wrong settings file. 125 muster failed. For muster run: that of the rank that failed first, "
    "128+n for "
    "signal n; 124 a time limit of muster's; 126 and 127 the program cannot be run or is not there; 130 interrupted; 143 "
    "terminated.";

std::string overview_page() {
    std::string page = fmt::format(".TH MUSTER 1 \"\" \"muster {}\" \"\"\n.SH NAME\nmuster \\- one rank per GPU\n", version());
    page += ".SH SYNOPSIS\n" + bold("muster") + " \\fICOMMAND\\fR [\\fIoptions\\fR]\n.SH COMMANDS\n";
    for (auto const& row : commands())
        if (!row.hidden) page += fmt::format(".TP\n{}\n{}\n", bold(fmt::format("muster {}", row.name)), roff_quote(row.summary));
    return page;
}

std::string command_page(command_row const& row) {
    std::string title = fmt::format("MUSTER-{}", row.name);
    for (char& c : title)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    std::string page = fmt::format(".TH {} 1 \"\" \"muster {}\" \"\"\n.SH NAME\n{} \\- {}\n", roff_quote(title), version(),
                                   roff_quote(fmt::format("muster-{}", row.name)), roff_quote(row.summary));
    page += fmt::format(".SH SYNOPSIS\n{} {}\n", bold(fmt::format("muster {}", row.name)), roff_quote(row.synopsis));
    page += ".SH DESCRIPTION\n" + paragraphs(row.manual) + options(row.name);
    return page + example_lines(row.examples);
}

std::string see_also(std::string_view command) {
    std::vector<std::string> pages;
    if (!command.empty()) pages.push_back("\\fBmuster\\fR(1)");
    for (auto const& row : commands())
        if (!row.hidden && !row.synopsis.empty() && row.name != command)
            pages.push_back(bold(fmt::format("muster-{}", row.name)) + "(1)");
    return ".SH \"SEE ALSO\"\n" + join(pages, ", ") + "\n";
}

}  // namespace

std::string roff_quote(std::string_view text) {
    std::string quoted;
    bool at_line_start = true;
    for (std::size_t at = 0; at < text.size();) {
        char const c = text[at];
        if (at_line_start && (c == '.' || c == '\'')) quoted += "\\&";
        at_line_start = c == '\n';
        if (static_cast<unsigned char>(c) >= 0x80) {
            auto const point = next_code_point(text, at);
            quoted += point == ellipsis ? "\\&..." : fmt::format("\\[u{:04X}]", point);
            continue;
        }
        ++at;
        switch (c) {
            case '\\': quoted += "\\e"; break;
            case '-': quoted += "\\-"; break;
            case '\'': quoted += "\\(aq"; break;
            case '"': quoted += "\\(dq"; break;
            case '^': quoted += "\\(ha"; break;
            case '~': quoted += "\\(ti"; break;
            case '`': quoted += "\\(ga"; break;
            default: quoted += c;
        }
    }
    return quoted;
}

std::string man_page(std::string_view command) {
    std::string page = ".\\\" Written by muster man from its tables of commands and settings.\n";
    if (command.empty()) {
        page += overview_page();
    } else {
        auto const* row = find_command(command);
        if (row == nullptr || row->synopsis.empty())
            throw error(errc::usage,
                        fmt::format("there is no man page of a command '{}'; muster --help lists commands", command));
        page += command_page(*row);
    }
    page += ".SH SETTINGS\n" + paragraphs(settings_text) + ".SH \"EXIT STATUS\"\n" + paragraphs(exit_text);
    return page + see_also(command);
}

int man_command(std::vector<std::string> const& args, environment const&) {
    auto const given = resolve_settings("man", args, {});
    if (print_help_if_asked("man", given)) return 0;
    if (given.command.size() > 1) throw error(errc::usage, "muster man takes one command");
    fmt::print("{}", man_page(given.command.empty() ? "" : given.command.front()));
    return 0;
}

}  // namespace muster
