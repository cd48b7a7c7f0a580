// The state that a communicator and its operations share.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/backend/argument_checks.hpp"
#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "comm/backend/processes/rank_processes.hpp"
#include "comm/backend/wait_counts.hpp"
#include "pmix/identity.hpp"

namespace muster::detail {

/// The reason why a communicator can do nothing more.
struct communicator_failure {
    std::string message;
    std::vector<int> culprits;
};

struct communicator_state {
    process_mark process;
    identity who;
    comm_options options;
    std::string_view backend_name;
    std::string why;  ///< for that backend
    std::unique_ptr<collective_backend> backend;
    argument_place place;
    void* stream = nullptr;      ///< the program's stream for device memory
    bool waited_long = false;    ///< the last wait was a long one
    bool yield_at_once = false;  ///< ranks share processors: a waiting rank yields its own
    std::optional<communicator_failure> failed;
    std::shared_ptr<wait_counts> waits;  ///< null: they are not counted
    bool numbers_world = true;           ///< its ranks have the numbers of the world
    std::size_t owners = 0;              ///< counted by state_owner
};

/// Marks the communicator as failed by the exception that is being handled, unless it has failed already.
void mark_failed(communicator_state& state) noexcept;

/// Returns "allreduce of "conv1.weight" (rank 5 of 8 on n3)".
std::string describe(communicator_state const& state, std::string_view what, std::string_view name);

/// Throws comm_error with the first failure if there was one.
void throw_if_failed(communicator_state const& state, std::string_view what, std::string_view name);

/// Throws errc::usage in a child that was forked since the communicator was made.
void check_process(communicator_state const& state, std::string_view what, std::string_view name);

/// Blocks until `which` has finished. Throws as operation::wait(duration) does; the communicator is then marked as failed.
void wait_for(communicator_state& state, ticket which, duration deadline, std::string_view what, std::string_view name);

/// Calls done() of the backend; marks the communicator as failed if that throws.
bool poll(communicator_state& state, ticket which);

}  // namespace muster::detail
