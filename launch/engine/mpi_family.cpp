#include "launch/engine/mpi_family.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/system/mpi_library.hpp"

namespace muster {

mpi_family family_of(std::string_view library) noexcept {
    auto const name = library.substr(library.rfind('/') + 1);
    if (name.empty()) return mpi_family::none;
    for (auto const cray : {"cray", "libmpi_gnu", "libmpi_intel", "libmpi_nvidia", "libmpi_amd", "libmpi_aocc"})
        if (name.find(cray) != std::string_view::npos) return mpi_family::cray;
    if (name.starts_with("libmpich") || name.ends_with(".so.12") || name.find(".so.12.") != std::string_view::npos)
        return mpi_family::mpich;
    return mpi_family::open_mpi;
}

bool is_foreign(mpi_family family, wire_up speaks) noexcept {
    if (family == mpi_family::none) return false;
    if (speaks == wire_up::pmix_and_pmi) return family == mpi_family::cray;  // Cray's library meets over PALS
    return speaks != (family == mpi_family::open_mpi ? wire_up::pmix : wire_up::pmi);
}

std::string_view engines_for(mpi_family family) noexcept {
    return family == mpi_family::open_mpi ? "--engine srun or mpirun" : "--engine mpiexec (MPICH's Hydra)";
}

mpi_family family_that_says(std::string_view version) noexcept {
    if (version.empty()) return mpi_family::none;
    if (version.find("Open MPI") != std::string_view::npos) return mpi_family::open_mpi;
    if (version.find("CRAY") != std::string_view::npos) return mpi_family::cray;
    for (auto const name : {"MPICH", "MVAPICH", "Intel(R) MPI"})
        if (version.find(name) != std::string_view::npos) return mpi_family::mpich;
    return mpi_family::none;
}

program_mpi find_mpi(engine_job const& job, scheduler_sources const& sources) {
    if (job.program.empty()) return {};
    std::vector<std::string> folders;
    auto const library_path = job.variables.get_or("LD_LIBRARY_PATH", "");
    for (auto const folder : split(library_path, ':'))
        if (!folder.empty()) folders.emplace_back(folder);
    auto const path = links_mpi(job.program, folders);
    if (path) {
        auto const name = path->substr(path->rfind('/') + 1);
        return {family_of(name), name};
    }
    auto const said = find_python_mpi(job, sources);
    return {family_that_says(said), said};
}

namespace {

/// Reads the number at `at`, and moves `at` behind it.
std::optional<std::int64_t> take_number(std::string_view text, std::size_t& at) noexcept {
    auto const from = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return parse_integer(text.substr(from, std::min<std::size_t>(at - from, 9)));
}

}  // namespace

std::optional<program_version> find_version(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        if (!is_digit(text[at])) {
            ++at;
            continue;
        }
        auto const major = take_number(text, at);
        if (at + 1 >= text.size() || text[at] != '.' || !is_digit(text[at + 1])) continue;
        ++at;
        auto const minor = take_number(text, at);
        if (major && minor) return program_version{static_cast<int>(*major), static_cast<int>(*minor)};
    }
    return std::nullopt;
}

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
        return "";  // the ranks will report it
    }
}

/// Returns "python3" for "#!/usr/bin/env python3".
std::string interpreter_of(std::string_view script) {
    if (!script.starts_with("#!")) return "";
    auto const line = trim(script.substr(2, script.find('\n') - 2));
    auto const word = line.substr(0, line.find(' '));
    return std::string(base_name(word) == "env" ? trim(line.substr(word.size())) : word);
}

bool names_mpi4py(engine_job const& job, scheduler_sources const& sources) {
    return std::ranges::any_of(job.command, [&](auto const& word) {
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
