#include "launch/jobs/check_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.hpp"
#include "base/process/process.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr std::array interpreters{"python", "bash", "sh", "perl", "ruby", "Rscript", "julia", "zsh"};
/// Behind these no file follows.
constexpr std::array without_file{"-c", "-m", "-e", "--eval", "-E"};
/// Those that have a word of their own behind them.
constexpr std::array with_word{"-W", "-X", "-I", "-O", "-o", "--rcfile"};

bool is_interpreter(std::string const& program) {
    auto const name = fs::path(program).filename().string();
    return std::any_of(interpreters.begin(), interpreters.end(), [&](std::string_view known) {
        return name.starts_with(known) && name.find_first_not_of("0123456789.", known.size()) == std::string::npos;
    });
}

template <typename Words>
bool holds_word(Words const& words, std::string const& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::string script_argument(std::vector<std::string> const& command) {
    if (command.empty() || !is_interpreter(command.front())) return {};
    bool const is_python = fs::path(command.front()).filename().string().starts_with("python");
    for (std::size_t i = 1; i < command.size(); ++i) {
        auto const& word = command[i];
        if (word.empty() || word == "-" || holds_word(without_file, word)) return {};
        if (word == "--") return i + 1 < command.size() ? command[i + 1] : std::string();
        if (word.front() != '-') return word;
        // Only of Python it is known here which options have a word behind them.
        if (holds_word(with_word, word)) i += is_python && word != "-W" && word != "-X" ? 0 : 1;
    }
    return {};
}

void check_program(std::vector<std::string> const& command, environment const& variables, bool loads_more) {
    auto const& program = command.front();
    if (!loads_more || program.find('/') != std::string::npos) {
        try {
            find_program(program, variables, "");
        } catch (program_error const& e) {
            throw error(errc::usage, fmt::format("{}; the job would fail: --no-check submits it all the same", e.what()));
        }
    }
    auto const script = script_argument(command);
    std::error_code fault;
    if (script.empty() || fs::exists(script, fault)) return;
    auto const folder = fs::current_path(fault).string();
    throw error(errc::usage,
                fmt::format("{}: no such file for {} in {}, where the job would start; check the name, or give --no-check",
                            script, program, folder));
}

}  // namespace muster
