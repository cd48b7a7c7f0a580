#include "base/command/command_set.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/process/start_thread.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/version.hpp"

namespace muster {

namespace {

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) noexcept {
    return std::ranges::find(words, word) != words.end();
}

}  // namespace

std::string command_help(std::string_view program, command_row const& row, std::string_view options) {
    auto text = fmt::format("{} {} {}      {}\n\n", program, row.name, row.synopsis, row.summary);
    if (!row.description.empty()) text += fmt::format("{}\n\n", row.description);
    if (!row.examples.empty()) text += fmt::format("{}\n", row.examples);
    return text + std::string(options) + std::string(row.closing);
}

void command_set::add(command_row const& row, with_options run) {
    add_unread(row, [this, &row, run = std::move(run)](std::vector<std::string> const& args) {
        given_options const given(fmt::format("{} {}", program_.name, row.name), row.options, row.most_words, args,
                                  row.takes_program);
        if (!given.has("help")) return run(given);
        std::vector<option_row> shown(row.options.begin(), row.options.end());
        shown.push_back({"help", 'h', "", "this text", ""});
        print(fold_help(command_help(program_.name, row, options_help(shown)), program_.width));
        return 0;
    });
}

void command_set::add_unread(command_row const& row, with_words run) {
    entries_.push_back({&row, std::move(run)});
}

int command_set::run(std::vector<std::string> const& words) const {
    if (words.empty()) {
        if (prints_) fmt::print(stderr, "{}", fold_help(overview(), program_.width));
        return 2;
    }
    auto const& first = words.front();
    if (first == "help" && words.size() == 2) return run({words.back(), "--help"});
    if (is_one_of(first, {"--help", "-h", "help"})) {
        print(fold_help(overview(), program_.width));
        return 0;
    }
    if (is_one_of(first, {"--version", "-v", "-V", "version"})) {
        print(version());
        return 0;
    }
    if (auto const* known = find(first)) return known->run({words.begin() + 1, words.end()});
    std::vector<std::string> names;
    for (auto const& each : entries_)
        if (!each.row->hidden) names.emplace_back(each.row->name);
    auto const near = nearest(first, names);
    throw_error(errc::usage, "no command '{}'{}; {} --help lists them", first,
                near ? fmt::format(", did you mean '{}'?", *near) : "", program_.name);
}

bool command_set::has(std::string_view name) const noexcept {
    return find(name) != nullptr;
}

std::vector<command_row const*> command_set::rows() const {
    std::vector<command_row const*> all;
    for (auto const& each : entries_) all.push_back(each.row);
    return all;
}

std::string command_set::overview() const {
    std::size_t width = 0;
    for (auto const& each : entries_)
        if (!each.row->hidden) width = std::max(width, each.row->name.size());
    auto text = fmt::format("{} {}: {}\n\n  {}\n\ncommands (each has --help)\n", program_.name, muster::version(),
                            program_.summary, program_.example);
    for (auto const& each : entries_)
        if (!each.row->hidden) text += fmt::format("  {:{}}{}\n", each.row->name, width + 2, each.row->summary);
    return program_.closing.empty() ? text : fmt::format("{}\n{}", text, program_.closing);
}

std::string command_set::version() const {
    return program_.version == nullptr ? fmt::format("{} {}\n", program_.name, muster::version()) : program_.version();
}

command_set::entry const* command_set::find(std::string_view name) const noexcept {
    for (auto const& each : entries_)
        if (each.row->name == name) return &each;
    return nullptr;
}

void command_set::print(std::string_view text) const {
    if (prints_) fmt::print("{}", text);
}

int finish_output(std::string_view program, int code) noexcept {
    if (std::fflush(stdout) == 0 || code != 0) return code;
    fmt::print(stderr, "{}: error: cannot write to standard output: {}; open it, or free space where it goes\n", program,
               std::strerror(errno));
    return exit_code(errc::io);
}

void print_error(std::string_view program, std::string_view text) {
    fmt::print(stderr, "{}: error: {}\n", program, without_controls(text));
}

int run_main(std::string_view program, std::function<int()> const& body) noexcept {
    have_room_in_stacks();
    ::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit of file sizes fails with EFBIG, and its error names the file
    try {
        return finish_output(program, body());
    } catch (error const& e) {
        print_error(program, e.what());
        return exit_code(e.code());
    } catch (std::exception const& e) {
        print_error(program, e.what());
        return exit_code(errc::internal);
    }
}

namespace {

constexpr command_row completion_row{
    .name = "completion", .summary = "the words that a shell completes", .synopsis = "[COMMAND [OPTION]]", .hidden = true};

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

std::vector<std::string> completion_values(command_set const& commands, std::string const& command, std::string_view option) {
    std::vector<std::string> values;
    for (auto const* row : commands.rows()) {
        if (row->name != command) continue;
        for (auto const& each : row->options) {
            bool const is_it =
                option == fmt::format("--{}", each.name) || (each.letter != 0 && option == fmt::format("-{}", each.letter));
            if (!is_it || each.choices.empty()) continue;
            for (auto const value : split(each.choices, ' ')) values.emplace_back(value);
        }
    }
    return values;
}

void add_completion_command(command_set& commands) {
    commands.add_unread(completion_row, [&commands](std::vector<std::string> const& args) {
        if (args.size() > 2)
            throw_error(errc::usage, "{} completion takes one command and one option of it", commands.program().name);
        if (args.size() == 2) {
            for (auto const& value : completion_values(commands, args[0], args[1])) fmt::print("{}\n", value);
            return 0;
        }
        auto const words = completion_words(commands, args.empty() ? "" : args.front());
        if (words.empty())
            throw_error(
                errc::usage,
                "{0} completion: {0} has no command '{1}'; a shell's script is printed by muster completion bash, zsh or fish",
                commands.program().name, args.front());
        for (auto const& word : words) fmt::print("{}\n", word);
        return 0;
    });
}

}  // namespace muster
