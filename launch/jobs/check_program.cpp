#include "launch/jobs/check_program.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/process/files.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

/// An interpreter and its one-letter options, after which the file to read may still follow.
struct interpreter {
    std::string_view name;
    std::string_view plain_options;
    std::string_view options_with_word = {};  ///< options that take the next word as their value
    bool is_shell = false;
};

constexpr std::array interpreters{interpreter{"python", "bBdEiIOPqRsSuvx", "WX"},
                                  interpreter{"bash", "abefhklmnprtuvxBCEHP", "", true},
                                  interpreter{"zsh", "aefhklmnruvx", "", true},
                                  interpreter{"sh", "abefhlmnuvx", "", true},
                                  interpreter{"perl", "cstTuUwWX"},
                                  interpreter{"ruby", "dlsvwW"},
                                  interpreter{"Rscript", ""},
                                  interpreter{"julia", ""}};

interpreter const* find_interpreter(std::string const& program) {
    auto const name = fs::path(program).filename().string();
    auto const found = std::ranges::find_if(interpreters, [&](interpreter const& known) {
        return name.starts_with(known.name) && name.find_first_not_of("0123456789.", known.name.size()) == std::string::npos;
    });
    return found == interpreters.end() ? nullptr : &*found;
}

/// Shells look for a script without a slash along PATH as well.
bool is_on_path(std::string const& script, environment const& variables) {
    if (script.find('/') != std::string::npos) return false;
    auto const path = variables.get_or("PATH", "");
    for (auto const folder : split(path, ':'))
        if (path_exists(fs::path(folder) / script)) return true;
    return false;
}

bool is_below(std::string const& path, std::vector<std::string> const& folders) {
    return std::ranges::any_of(folders, [&](std::string const& folder) {
        auto const part = fs::path(path).lexically_normal().lexically_relative(fs::path(folder).lexically_normal());
        return !part.empty() && *part.begin() != "..";
    });
}

/// Returns the folder, without a slash at its end, in which the job would certainly look for the file in vain; else nothing.
std::optional<std::string> folder_without(std::string const& file, program_place const& where) {
    if (where.changes_files || is_below(file, where.staged_folders)) return std::nullopt;
    std::error_code fault;
    auto const folder = (fs::current_path(fault) / where.working_dir).lexically_normal();
    if (fault || fs::exists(folder / file, fault) || fault) return std::nullopt;
    return (folder.has_filename() || !folder.has_relative_path() ? folder : folder.parent_path()).string();
}

void check_script(std::vector<std::string> const& command, environment const& variables, program_place const& where) {
    auto const script = script_argument(command);
    auto const folder = script.empty() ? std::nullopt : folder_without(script, where);
    if (!folder) return;
    if (find_interpreter(command.front())->is_shell && is_on_path(script, variables)) return;
    throw_error(errc::usage, "{}: no such file for {} in {}, where the job would start; check the name, or give --no-check",
                script, command.front(), *folder);
}

}  // namespace

std::string script_argument(std::vector<std::string> const& command) {
    auto const* known = command.empty() ? nullptr : find_interpreter(command.front());
    if (known == nullptr) return {};
    for (std::size_t i = 1; i < command.size(); ++i) {
        auto const& word = command[i];
        if (word.empty() || word.front() == '+') return {};
        if (word.front() != '-') return word;
        bool const has_word = word.size() == 2 && known->options_with_word.find(word[1]) != std::string_view::npos;
        bool const is_plain = word.size() > 1 && word.find_first_not_of(known->plain_options, 1) == std::string::npos;
        if (!has_word && !is_plain) return {};
        i += has_word ? 1 : 0;
    }
    return {};
}

void check_program(std::vector<std::string> const& command, environment const& variables, program_place const& where) {
    auto const& program = command.front();
    bool const has_slash = program.find('/') != std::string::npos;
    bool const may_come = has_slash ? where.changes_files || is_below(program, where.staged_folders) : where.loads_more;
    if (!may_come) {
        try {
            find_program(program, variables, where.working_dir);
        } catch (program_error const& e) {
            throw_error(errc::usage, "{}; the job would fail: --no-check submits it all the same", e.what());
        }
    }
    check_script(command, variables, where);
}

void check_image(std::string const& image, program_place const& where) {
    bool const is_file =
        image.find("://") == std::string::npos && (image.find('/') == 0 || image.starts_with("./") || image.starts_with("../") ||
                                                   image.ends_with(".sif") || image.ends_with(".sqsh"));
    if (auto const folder = is_file ? folder_without(image, where) : std::nullopt)
        throw_error(errc::usage,
                    "--container {}: there is no such image in {}, where the job would start; check the name, or give --no-check",
                    image, *folder);
}

void check_venv(std::string const& venv, program_place const& where) {
    auto const file = venv + "/bin/activate";
    if (auto const folder = venv.empty() ? std::nullopt : folder_without(file, where))
        throw_error(errc::usage, "--venv {}: there is no {} in {}, where the job would start; check the name, or give --no-check",
                    venv, file, *folder);
}

}  // namespace muster
