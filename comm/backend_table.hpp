// The table of backends, and the choice of a row for a world.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "pmix/identity.hpp"

namespace muster {

struct backend_row {
    std::string_view name;
    /// Returns why it cannot serve this world, or nothing if it can. Pure, except for queries to its library; not collective.
    std::optional<std::string> (*unavailable)(identity const&, comm_options const&);
    /// Makes the backend. Collective if it has peers.
    std::unique_ptr<collective_backend> (*create)(identity const&, comm_options const&);
    /// The memory that it reaches; a row is not chosen for tensors in other memory.
    memory_kind memory = memory_kind::host;
    /// The ranks meet in create() before anything is made, and one that cannot be served says so there: call create() on it too,
    /// which then throws the same on all ranks.
    bool tells_refusal = false;
    /// Messages about tensors in other memory add this to the fact that the backend cannot reach them.
    std::string_view instead{};
    /// The same as create() for ranks that can already gather bytes; null if the backend needs the whole job.
    std::unique_ptr<collective_backend> (*create_over)(gather_function const&, identity const&, comm_options const&) = nullptr;
};

/// Returns the rows in the order in which they are tried.
std::span<backend_row const> backend_table() noexcept;

/// Returns the row for device memory that has this name, or the first one if the name is another row's. Throws errc::usage for a
/// name that is not in the table.
backend_row const& device_row(std::string_view name);

/// A row, and the reason in words: "backend shm, the first in the table that can serve them; refused before: self: …".
struct backend_choice {
    backend_row const* row = nullptr;
    std::string why;
};

/// Returns the row that options.backend names, else the first that is available; logs what was tried and why it was refused.
/// Throws errc::usage for a name that is not in the table and errc::unavailable, with every refusal, if none is left.
backend_choice choose_backend(std::span<backend_row const> table, identity const& who, comm_options const& options);

/// Takes part in the rendezvous of a backend whose ranks meet first, after choose_backend() found none for this rank: other ranks
/// may wait for it there. Throws what all of them throw, naming who lacks what; returns if there is no such backend.
void tell_refusal(identity const& who, comm_options const& options);

}  // namespace muster
