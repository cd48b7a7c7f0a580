
#include "launch/preflight/probed_node.hpp"

#include "launch/preflight/node_prober.hpp"

namespace muster {

std::vector<probed_node> probe_nodes(run_context const& run, std::vector<int> const& nodes, choose_first const& first) {
    return node_prober(run, nodes, first).run();
}

}  // namespace muster
