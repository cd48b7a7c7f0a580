#include "launch/engine/python_mpi.hpp"

#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

constexpr std::string_view question =
    "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())";

std::string_view base_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

std::string read_script(engine_job const& job, scheduler_sources const& sources, std::string const& name) {
    try {
        auto const below = name.starts_with('/') || job.working_dir.empty() ? name : job.working_dir + "/" + name;
        return sources.read_file(below).value_or("");
    } catch (error const&) {
        return "";  // the ranks will tell
    }
}

/// "#!/usr/bin/env python3" is "python3".
std::string interpreter_of(std::string_view script) {
    if (!script.starts_with("#!")) return "";
    auto const line = trim(script.substr(2, script.find('\n') - 2));
    auto const word = line.substr(0, line.find(' '));
    return std::string(base_name(word) == "env" ? trim(line.substr(word.size())) : word);
}

bool names_mpi4py(engine_job const& job, scheduler_sources const& sources) {
    return std::any_of(job.command.begin(), job.command.end(), [&](auto const& word) {
        if (word.find("mpi4py") != std::string::npos) return true;
        return word.ends_with(".py") && read_script(job, sources, word).find("mpi4py") != std::string::npos;
    });
}

}  // namespace

std::string find_python_mpi(engine_job const& job, scheduler_sources const& sources) {
    std::string python = job.program;
    if (python.ends_with(".py")) python = interpreter_of(read_script(job, sources, python));
    if (!base_name(python).starts_with("python") || !names_mpi4py(job, sources)) return "";
    auto const said = sources.run_command({python, "-c", std::string(question)});
    return said.exit_status == 0 ? std::string(trim(said.out.substr(0, said.out.find('\n')))) : "";
}

}  // namespace muster
