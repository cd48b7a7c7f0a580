#include "base/command/manual.hpp"

#include <fmt/format.h>

#include "base/letters.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/version.hpp"

namespace muster {

namespace {

constexpr command_row manual_row{.name = "manual", .summary = "print the man page in Markdown", .hidden = true};

std::string command_section(std::string_view program, command_row const& row) {
    auto text = fmt::format("## {}\n\n**{} {}** {}\n\n{}{}.\n", row.name, program, row.name, markdown_of(row.synopsis),
                            upper_case(row.summary.substr(0, 1)), markdown_of(row.summary.substr(1)));
    for (auto const paragraphs : {row.description, row.manual})
        if (!paragraphs.empty()) text += fmt::format("\n{}\n", markdown_of(paragraphs));
    for (auto const& option : row.options) {
        auto const fallback = option.fallback.empty() ? std::string() : fmt::format(" [{}]", option.fallback);
        text += option_paragraph(option.letter, option.name, option.argument, fmt::format("{}{}", option.help, fallback));
    }
    if (!row.closing.empty()) text += fmt::format("\n{}\n", markdown_of(row.closing));
    return row.examples.empty() ? text + "\n" : text + example_block(row.examples);
}

std::string program_page(command_set const& commands) {
    auto const& program = commands.program();
    auto page = page_head(program.name, program.summary);
    page += fmt::format("# SYNOPSIS\n\n**{}** *COMMAND* [*options*]\n\n# COMMANDS\n\n", program.name);
    for (auto const* row : commands.rows())
        if (!row->hidden) page += command_section(program.name, *row);
    return page + page_end(program.name, {"muster", "muster-run", "muster-stage", "muster-bench"}, program.name);
}

}  // namespace

std::string markdown_of(std::string_view text) {
    static constexpr std::string_view marks = "\\`*_[]<>|^~&#";
    std::string escaped;
    for (char const c : text) {
        if (marks.find(c) != marks.npos) escaped += '\\';
        escaped += c;
    }
    return escaped;
}

std::string page_head(std::string_view name, std::string_view summary) {
    return fmt::format("title: {}\nsection: 1\nsource: muster {}\n\n# NAME\n\n{} - {}\n\n", upper_case(name), version(), name,
                       markdown_of(summary));
}

std::string option_paragraph(char letter, std::string_view name, std::string_view argument, std::string_view text) {
    auto const short_form = letter == 0 ? std::string() : fmt::format("**-{}**, ", letter);
    auto const value = argument.empty() ? std::string() : fmt::format(" *{}*", markdown_of(argument));
    return fmt::format("\n{}**--{}**{}\n: {}\n", short_form, name, value, markdown_of(text));
}

std::string example_block(std::string_view lines) {
    return lines.empty() ? std::string() : fmt::format("\n```\n{}{}```\n\n", lines, lines.ends_with('\n') ? "" : "\n");
}

std::string page_end(std::string_view page, std::vector<std::string> const& pages, std::string_view own) {
    std::vector<std::string> others;
    for (auto const& each : pages)
        if (each != own) others.push_back(fmt::format("**{}**(1)", each));
    return fmt::format("<!-- sections: {} -->\n\n# SEE ALSO\n\n{}\n", page, join(others, ", "));
}

void add_manual_command(command_set& commands) {
    commands.add_unread(manual_row, [&commands](std::vector<std::string> const& args) {
        if (!args.empty()) throw_error(errc::usage, "{} manual takes no argument", commands.program().name);
        fmt::print("{}", program_page(commands));
        return 0;
    });
}

}  // namespace muster
