#include "launch/placement.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "base/error.hpp"

namespace muster {

std::string short_host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
    std::string const full(name.data());
    return full.substr(0, full.find('.'));
}

placement place_ranks(request const& wanted, environment const& variables, std::string const& topology_xml, bool local_only) {
    if (!local_only && topology_xml.empty())
        if (auto const why = several_nodes(variables))
            throw error(
                errc::unavailable,
                fmt::format("{}, and this version runs on one node only; ask for one node, or give --scheduler local to use "
                            "this node alone",
                            *why));
    placement where;
    auto const visible = variables.get("CUDA_VISIBLE_DEVICES");
    where.machine = topology_xml.empty() ? discover_topology(short_host_name(), current_affinity(), visible ? &*visible : nullptr)
                                         : load_topology(topology_xml);
    where.given = local_allocation(where.machine.host, static_cast<int>(where.machine.cores.size()),
                                   static_cast<int>(where.machine.gpus.size()));
    where.map = map_ranks(where.given, wanted);
    where.bindings = bind_ranks(where.machine, wanted, where.map.world_size());
    return where;
}

identity identity_of(placement const& where, int rank, std::string const& nspace) {
    int const size = where.map.world_size();
    return {nspace, rank, size, rank, size, 0, 1, where.machine.host, identity::source::muster};
}

}  // namespace muster
