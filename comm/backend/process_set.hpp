// The identity of a rank within a process set.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "pmix/identity.hpp"

namespace muster {

/// The identity, within the set of `ranks` of its world, of the rank `ranks[place]`: numbered by their order; nodes are told
/// apart by `hosts` (of every rank of the world) and numbered by their first rank. Namespace and source are those of `who`.
/// Pure. `ranks` are distinct and have a host.
identity identity_in_set(identity const& who, std::span<int const> ranks, std::size_t place, std::span<std::string const> hosts);

/// The identity of `ranks[place]` in a communicator that these ranks of the job step make by themselves (comm_options::members),
/// with its own namespace, which holds `name` and the list. Where the job step has several nodes nothing is known of who shares
/// one, so that this rank is taken to be alone on its node. Pure.
identity identity_of_member(identity const& who, std::span<int const> ranks, std::size_t place, std::string_view name);

/// A number that differs, almost surely, between lists of ranks that differ.
std::int64_t fingerprint_of(std::span<int const> ranks) noexcept;

/// "job#2" for the third world of that name that this process makes: those of the same number belong together on all ranks. Thread safe.
std::string numbered_world(std::string const& name);

}  // namespace muster
