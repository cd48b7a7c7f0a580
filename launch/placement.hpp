// Both halves of placement on this node: what `muster plan` shows and `muster run` does.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/allocation.hpp"
#include "launch/binding.hpp"
#include "launch/mapping.hpp"
#include "launch/topology.hpp"
#include "pmix/identity.hpp"

namespace muster {

struct placement {
    topology machine;
    allocation given;
    mapping map;
    std::vector<binding> bindings;  ///< one a rank
    bool operator==(placement const&) const = default;
};

/// Discovers this node, or reads `topology_xml` if it is not empty, and places the ranks on it. Throws errc::placement if they do
/// not fit, or if this is a scheduler's job of several nodes and `local_only` is not set.
placement place_ranks(request const& wanted, environment const& variables, std::string const& topology_xml, bool local_only);

/// Who rank `rank` of this placement is, in the job `nspace`.
identity identity_of(placement const& where, int rank, std::string const& nspace);

/// This machine's name up to the first dot, as schedulers and people write it.
std::string short_host_name();

}  // namespace muster
