#include "base/process/process.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/process/process_starter.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

bool is_executable_file(std::string const& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::string search_path(environment const& variables) {
    return variables.get_or("PATH", "/usr/local/bin:/usr/bin:/bin");
}

/// PATH's beginning: with modules it has hundreds of characters.
std::string shown_path(environment const& variables) {
    constexpr std::size_t most = 120;
    auto const path = search_path(variables);
    auto const end = path.rfind(':', most);
    if (path.size() <= most || end == std::string::npos) return path;
    auto const shown = path.substr(0, end);
    auto const folders = [](std::string const& list) { return std::ranges::count(list, ':') + 1; };
    return fmt::format("{} and {} more folders", shown, folders(path) - folders(shown));
}

/// The first executable file of that name on PATH, or nothing.
std::string first_on_path(std::string const& program, environment const& variables) {
    auto const folders = search_path(variables);
    for (auto const folder : split(folders, ':')) {
        std::string path = fmt::format("{}/{}", folder.empty() ? std::string_view(".") : folder, program);
        if (is_executable_file(path)) return path;
    }
    return {};
}

std::string suggestion(std::string const& program) {
    if (program.ends_with(".py")) return fmt::format("chmod +x it, or write python3 in front of it: python3 {}", program);
    if (program.ends_with(".sh")) return fmt::format("chmod +x it, or write bash in front of it: bash {}", program);
    return "chmod +x it";
}

}  // namespace

/// Works as vfork does, but on a separate stack: the child shares our memory, and we wait until it runs its program.
pid_t start_process(process_request const& request) {
    alignas(64) thread_local std::array<std::byte, 64 << 10> stack;  // this thread waits, so it has one child at a time
    child_image image(request);
    pid_t const pid = image.clone(stack, CLONE_VFORK);
    if (image.failure().step == nullptr) return pid;
    while (pid > 0 && ::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    image.throw_failure();
}

std::string find_program(std::string const& program, environment const& variables, std::string const& working_dir) {
    if (program.find('/') != std::string::npos) {
        std::string const path = program.front() == '/' || working_dir.empty() ? program : working_dir + "/" + program;
        if (is_executable_file(path)) return path;
        struct stat info {};
        if (::stat(path.c_str(), &info) != 0)
            throw program_error(errc::not_found,
                                fmt::format("no program {}: {}; check the path{}", path, std::strerror(errno),
                                            program.front() == '/' ? "" : ", which is relative to the working directory"));
        if (S_ISDIR(info.st_mode))
            throw program_error(errc::unavailable, fmt::format("cannot execute {}: it is a directory; name a program", path));
        throw program_error(errc::unavailable,
                            fmt::format("cannot execute {}: it has no execute permission; {}", path, suggestion(program)));
    }
    if (auto path = first_on_path(program, variables); !path.empty()) return path;
    std::string const here = working_dir.empty() ? program : working_dir + "/" + program;
    std::string hint = "install it, load its module, or give its path";
    auto const blank = program.find(' ');
    auto const equals = program.find('=');
    if (program == "python" && !first_on_path("python3", variables).empty())
        hint = "there is python3: write that";
    else if (blank != std::string::npos && !first_on_path(program.substr(0, blank), variables).empty())
        hint = fmt::format("its name has a blank: give program and arguments as separate words: {}", program);
    else if (equals != std::string::npos && equals > 0)
        hint = fmt::format("set a variable by -x {} in front of the --", program);
    else if (::access(here.c_str(), F_OK) == 0)
        throw program_error(errc::not_found,
                            fmt::format("no program '{}' on PATH; the file of that name in the working directory: {}", program,
                                        is_executable_file(here) ? fmt::format("write ./{}", program) : suggestion(program)));
    throw program_error(errc::not_found, fmt::format("no program '{}' on PATH ({}); {}", program, shown_path(variables), hint));
}

std::string find_program_or_nothing(std::string const& program, environment const& variables) {
    if (program.find('/') == std::string::npos) return first_on_path(program, variables);
    return is_executable_file(program) ? program : "";
}

}  // namespace muster
