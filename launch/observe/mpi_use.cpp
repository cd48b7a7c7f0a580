#include "launch/observe/mpi_use.hpp"

#include <fmt/format.h>
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "launch/system/elf_file.hpp"
#include "launch/system/mpi_library.hpp"

namespace muster {

namespace {

/// Open MPI's own state: 0 until MPI_Init has begun (ompi/runtime/mpiruntime.h, OMPI_MPI_STATE_NOT_INITIALIZED).
constexpr std::string_view open_mpi_state = "ompi_mpi_state";

std::string_view name_of_file(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

std::optional<bool> read_state(pid_t pid, mapped_mpi const& mapped) {
    // As the process itself sees it: it may be in a container.
    auto const offset = find_elf_object(fmt::format("/proc/{}/root{}", pid, mapped.path), open_mpi_state);
    if (!offset) return std::nullopt;
    std::int32_t state = 0;
    iovec here{&state, sizeof state};
    iovec there{reinterpret_cast<void*>(mapped.address + *offset), sizeof state};
    if (::process_vm_readv(pid, &here, 1, &there, 1, 0) != static_cast<ssize_t>(sizeof state)) return std::nullopt;
    return state != 0;
}

bool is_linked(pid_t pid) {
    std::array<char, PATH_MAX> path{};
    auto const length = ::readlink(fmt::format("/proc/{}/exe", pid).c_str(), path.data(), path.size());
    return length > 0 && links_mpi(std::string(path.data(), static_cast<std::size_t>(length))).has_value();
}

bool has_pmi1_variables(pid_t pid) {
    auto const variables = read_text_file(fmt::format("/proc/{}/environ", pid));
    auto const all = split(variables, '\0');
    return std::any_of(all.begin(), all.end(),
                       [](auto one) { return one.starts_with("PMI_FD=") || one.starts_with("PMI_PORT="); });
}

}  // namespace

std::optional<mapped_mpi> mpi_in_maps(std::string_view maps) {
    std::optional<mapped_mpi> found;
    bool by_mpi4py = false;
    for (auto const line : split(maps, '\n')) {
        auto const slash = line.find('/');
        if (slash == std::string_view::npos) continue;
        auto const path = line.substr(slash);
        if (!found && is_mpi_library(name_of_file(path))) {
            found.emplace().path = std::string(path);
            std::from_chars(line.data(), line.data() + line.size(), found->address, 16);
        }
        by_mpi4py = by_mpi4py || path.find("/mpi4py/MPI.") != std::string_view::npos;
    }
    if (found) found->by_mpi4py = by_mpi4py;
    return found;
}

mpi_sight look_for_mpi(pid_t pid) {
    auto const mapped = mpi_in_maps(read_text_file(fmt::format("/proc/{}/maps", pid)));
    if (!mapped) return {};
    mpi_sight sight{.library = mapped->path, .initialised = read_state(pid, *mapped)};
    if (sight.initialised) return sight;
    sight.linked = mapped->by_mpi4py || is_linked(pid);
    sight.has_pmi1 = has_pmi1_variables(pid);
    return sight;
}

}  // namespace muster
