#include "base/command/completion_words.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace muster {

namespace {

constexpr command_row completion_row{
    .name = "completion", .summary = "the words that a shell completes", .synopsis = "[COMMAND]", .hidden = true};

}  // namespace

std::vector<std::string> completion_words(command_set const& commands, std::string const& command) {
    std::vector<std::string> out;
    for (auto const* row : commands.rows()) {
        if (command.empty() && !row->hidden) out.emplace_back(row->name);
        if (command.empty() || command != row->name) continue;
        for (auto const& option : row->options) out.push_back(fmt::format("--{}", option.name));
        out.emplace_back("--help");
    }
    return out;
}

void add_completion_command(command_set& commands) {
    commands.add_unread(completion_row, [&commands](std::vector<std::string> const& args) {
        if (args.size() > 1) throw error(errc::usage, fmt::format("{} completion takes one command", commands.program().name));
        auto const words = completion_words(commands, args.empty() ? "" : args.front());
        if (words.empty())
            throw error(errc::usage,
                        fmt::format("{0} completion: {0} has no command '{1}'; a shell's script is printed by muster "
                                    "completion bash, zsh or fish",
                                    commands.program().name, args.front()));
        for (auto const& word : words) fmt::print("{}\n", word);
        return 0;
    });
}

}  // namespace muster
