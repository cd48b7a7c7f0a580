#include "launch/engine/mpi_family.hpp"

#include <vector>

#include "base/text.hpp"
#include "launch/engine/python_mpi.hpp"
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
    if (speaks == wire_up::pmix_and_pmi) return family == mpi_family::cray;  // Cray's own meets over PALS
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

}  // namespace muster
