#include "launch/observe/abort_notice.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace muster {

namespace {

/// The whole number that stands right behind `before`, or nothing.
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
    // MPICH's own errors end the world too: "Abort(269109766) on node 0 (rank 0 in comm 0): Fatal error in …"; nodes are ranks there.
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
