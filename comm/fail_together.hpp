// Failure on all ranks together. A phase that fails on one rank throws on every rank.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "comm/communicator.hpp"

namespace muster {

/// The failure that one rank reports.
struct own_failure {
    errc code = errc::internal;
    std::string message;  ///< its first 4096 bytes are sent
    bool operator==(own_failure const&) const = default;
};

/// The word of messages for a member of a communicator: where one rank works for each node, its number there is not a rank's.
enum class member_is { rank, node };

/// Returns the report on `problem`.
own_failure report_of(std::exception_ptr const& problem);

/// Collective. Returns on every rank if no rank reports a failure (one allreduce of 4 bytes); else throws comm_error on every
/// rank, with the code of the lowest failed rank. It names every failed rank, its host (only the host with member_is::node) and
/// its message. `what` says what was attempted ("open train.h5").
void throw_if_any_failed(communicator& ranks, std::string_view what, std::optional<own_failure> const& failure,
                         member_is member = member_is::rank);

/// The same for an exception; null means success.
void throw_if_any_failed(communicator& ranks, std::string_view what, std::exception_ptr const& failure,
                         member_is member = member_is::rank);

/// Collective. Runs the local work `body` and returns its result if it succeeded on all ranks; else throws on every rank as
/// throw_if_any_failed() does. `body` itself must not be collective: a rank whose body throws would leave the others in it.
template <typename Body>
auto run_on_all(communicator& ranks, std::string_view what, Body&& body, member_is member = member_is::rank) {
    std::exception_ptr problem;
    if constexpr (std::is_void_v<decltype(body())>) {
        try {
            body();
        } catch (...) {
            problem = std::current_exception();
        }
        throw_if_any_failed(ranks, what, problem, member);
    } else {
        std::optional<decltype(body())> result;
        try {
            result.emplace(body());
        } catch (...) {
            problem = std::current_exception();
        }
        throw_if_any_failed(ranks, what, problem, member);
        return std::move(*result);
    }
}

}  // namespace muster
