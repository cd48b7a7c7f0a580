#include "base/manual/man_page.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/manual/manual_section.hpp"
#include "base/manual/roff.hpp"
#include "base/text.hpp"
#include "base/version.hpp"

namespace muster {

namespace {

constexpr command_row man_row{.name = "man",
                              .summary = "print the man page",
                              .synopsis = "",
                              .examples = {},
                              .options = {},
                              .description = {},
                              .closing = {},
                              .arguments = {},
                              .manual = {},
                              .most_words = 0,
                              .hidden = true};

/// "write a file" as "Write a file."
std::string sentence(std::string_view summary) {
    std::string text(summary);
    if (!text.empty() && text.front() >= 'a' && text.front() <= 'z') text.front() = static_cast<char>(text.front() - 'a' + 'A');
    return text + ".";
}

std::string command_section(std::string_view program, command_row const& row) {
    auto text =
        fmt::format(".SS \"{0}\"\n{1} {2}\n.PP\n{3}\n", roff_quote(row.name), roff_bold(fmt::format("{} {}", program, row.name)),
                    roff_quote(row.synopsis), roff_quote(sentence(row.summary)));
    for (auto const paragraph : {row.description, row.manual})
        if (!paragraph.empty()) text += ".PP\n" + roff_paragraphs(paragraph);
    for (auto const& option : row.options) {
        auto const fallback = option.fallback.empty() ? std::string() : fmt::format(" [{}]", option.fallback);
        text += option_paragraph(option.letter, option.name, option.argument, fmt::format("{}{}", option.help, fallback));
    }
    if (!row.closing.empty()) text += ".PP\n" + roff_paragraphs(row.closing);
    return row.examples.empty() ? text : text + ".PP\n" + example_block(row.examples);
}

}  // namespace

std::string page_head(std::string_view name, std::string_view summary) {
    std::string title(name);
    for (char& c : title)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    // No hyphenation: names of variables must not be divided.
    return fmt::format(".TH {} 1 \"\" \"muster {}\" \"\"\n.nh\n.SH NAME\n{} \\- {}\n", roff_quote(title), version(),
                       roff_quote(name), roff_quote(summary));
}

std::string option_paragraph(char letter, std::string_view name, std::string_view argument, std::string_view text) {
    auto const short_name = letter == 0 ? std::string() : roff_bold(fmt::format("-{}", letter)) + ", ";
    auto const value = argument.empty() ? std::string() : fmt::format(" \\fI{}\\fR", roff_quote(argument));
    return fmt::format(".TP\n{}{}{}\n{}\n", short_name, roff_bold(fmt::format("--{}", name)), value, roff_quote(text));
}

std::string example_block(std::string_view lines) {
    if (lines.empty()) return {};
    return fmt::format(".EX\n{}{}.EE\n", roff_quote(lines), lines.ends_with('\n') ? "" : "\n");
}

std::string see_also(std::vector<std::string> const& pages, std::string_view own) {
    std::vector<std::string> others;
    for (auto const& page : pages)
        if (page != own) others.push_back(roff_bold(page) + "(1)");
    return ".SH \"SEE ALSO\"\n" + join(others, ", ") + "\n";
}

std::string program_page(command_set const& commands) {
    auto const& program = commands.program();
    auto page = page_head(program.name, program.summary);
    page += fmt::format(".SH SYNOPSIS\n{} \\fICOMMAND\\fR [\\fIoptions\\fR]\n.SH COMMANDS\n", roff_bold(program.name));
    for (auto const* row : commands.rows())
        if (!row->hidden) page += command_section(program.name, *row);
    page += manual_sections(program.name);
    return page + see_also({"muster", "muster-run", "muster-stage", "muster-bench", "muster-trace"}, program.name);
}

void add_man_command(command_set& commands) {
    commands.add_unread(man_row, [&commands](std::vector<std::string> const& args) {
        if (!args.empty()) throw error(errc::usage, fmt::format("{} man takes no argument", commands.program().name));
        fmt::print("{}", program_page(commands));
        return 0;
    });
}

}  // namespace muster
