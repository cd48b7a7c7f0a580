// The identity of a rank within a process set.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "pmix/identity.hpp"

namespace muster {

/// Returns the identity of the rank `ranks[place]` within the set of `ranks` of its world. Ranks are numbered by their order,
/// nodes by their first rank; `hosts` (of every rank of the world) distinguishes nodes. Namespace and source are those of `who`.
/// `ranks` are distinct and have a host. Pure.
identity identity_in_set(identity const& who, std::span<int const> ranks, std::size_t place, std::span<std::string const> hosts);

/// Returns the identity of `ranks[place]` in a communicator that these ranks of the job step make by themselves
/// (comm_options::members), with a namespace that holds `name` and the list. In a job step of several nodes this rank counts as
/// alone on its node, since nothing says which ranks share one. Pure.
identity identity_of_member(identity const& who, std::span<int const> ranks, std::size_t place, std::string_view name);

/// Returns a number that almost surely differs between different lists of ranks.
std::int64_t fingerprint_of(std::span<int const> ranks) noexcept;

/// Returns "job#2" for the third world of that name that this process makes: worlds of equal number belong together on all ranks. Thread
/// safe.
std::string numbered_world(std::string const& name);

}  // namespace muster
