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

/// Names Open MPI's own state: 0 until MPI_Init has begun (ompi/runtime/mpiruntime.h, OMPI_MPI_STATE_NOT_INITIALIZED).
constexpr std::string_view open_mpi_state = "ompi_mpi_state";

std::string_view name_of_file(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

std::optional<bool> read_state(pid_t pid, mapped_mpi const& mapped) {
    // This path is the process' own view of the file: it may be in a container.
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
    return std::ranges::any_of(all, [](auto one) { return one.starts_with("PMI_FD=") || one.starts_with("PMI_PORT="); });
}

/// `muster-stage out … -- COMMAND` has MPI loaded but joins no world: the command is the rank.
bool relays_a_command(pid_t pid) {
    auto const line = read_text_file(fmt::format("/proc/{}/cmdline", pid), 65536);
    auto const words = split(line, '\0');
    return name_of_file(words.front()) == "muster-stage" && std::ranges::find(words, "--") != words.end();
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
    if (!mapped || relays_a_command(pid)) return {};
    mpi_sight sight{.library = mapped->path, .initialised = read_state(pid, *mapped)};
    if (sight.initialised) return sight;
    sight.linked = mapped->by_mpi4py || is_linked(pid);
    sight.has_pmi1 = has_pmi1_variables(pid);
    return sight;
}

namespace {

/// Returns the whole number right after `before`, or nothing.
std::optional<int> number_behind(std::string_view text, std::string_view before) {
    auto const at = text.find(before);
    if (at == std::string_view::npos) return std::nullopt;
    auto const rest = text.substr(at + before.size());
    auto const end = std::min(rest.find_first_not_of("-0123456789"), rest.size());
    auto const number = parse_integer(rest.substr(0, end));
    return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace

std::optional<abort_notice> find_abort_notice(std::string_view lines) {
    constexpr std::string_view mpich = "application called MPI_Abort(MPI_COMM_WORLD, ";
    constexpr std::string_view mpich_error = "Abort(";
    constexpr std::string_view open_mpi = "MPI_ABORT was invoked on rank ";
    if (auto const at = lines.find(mpich); at != std::string_view::npos) {
        auto const rest = lines.substr(at);
        auto const code = number_behind(rest, mpich), rank = number_behind(rest, ") - process ");
        if (code && rank) return abort_notice{*rank, *code};
    }
    // MPICH's own errors also end the world: "Abort(269109766) on node 0 (rank 0 in comm 0): Fatal error in …"; nodes are ranks
    // there.
    if (auto const at = lines.find(mpich_error); at != std::string_view::npos && (at == 0 || lines[at - 1] == '\n')) {
        auto const line = lines.substr(at, lines.find('\n', at) - at);
        auto const code = number_behind(line, mpich_error), rank = number_behind(line, ") on node ");
        if (code && rank && line.find(" in comm ") != std::string_view::npos) return abort_notice{*rank, *code};
    }
    if (auto const at = lines.find(open_mpi); at != std::string_view::npos) {
        auto const rest = lines.substr(at);
        auto const rank = number_behind(rest, open_mpi), code = number_behind(rest, "with errorcode ");
        if (rank && code && rest.find("MPI_COMM_WORLD") != std::string_view::npos) return abort_notice{*rank, *code};
    }
    return std::nullopt;
}

}  // namespace muster
