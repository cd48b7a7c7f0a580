// Failure on all ranks together. A phase that fails on one rank throws on every rank.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "comm/communicator.hpp"

namespace muster {

/// What one rank has to report.
struct own_failure {
    errc code = errc::internal;
    std::string message;  ///< sent in its first 4096 bytes
    bool operator==(own_failure const&) const = default;
};

/// What a message calls the members of a communicator: where one rank works for each node, its number there is nobody's rank.
enum class member_is { rank, node };

/// The report on an exception that is being handled.
own_failure report_of(std::exception_ptr const& problem);

/// Collective. Returns on every rank if no rank reports a failure (one allreduce of 4 bytes); else throws comm_error on every
/// rank, with the code of the lowest failed rank, naming every failed rank, its host (that alone with member_is::node) and its
/// message. `what` says what was attempted ("open train.h5").
void throw_if_any_failed(communicator& ranks, std::string_view what, std::optional<own_failure> const& failure,
                         member_is member = member_is::rank);

/// The same for an exception; null is success.
void throw_if_any_failed(communicator& ranks, std::string_view what, std::exception_ptr const& failure,
                         member_is member = member_is::rank);

/// Collective. Runs the local work `body` and returns its result if it succeeded on all ranks; else throws as
/// throw_if_any_failed() does, on every rank. `body` itself must not be collective: a rank whose body throws would leave the
/// others in it.
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
