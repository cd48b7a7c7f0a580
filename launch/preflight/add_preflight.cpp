#include "launch/preflight/add_preflight.hpp"

#include "launch/preflight/check_nodes.hpp"
#include "launch/preflight/node_probe.hpp"
#include "launch/preflight/survey_text.hpp"

namespace muster {

void add_preflight(part_functions& to) {
    to.commands.push_back({"probe", probe_command});
    to.check_nodes = check_nodes;
    to.examine_nodes = examine_nodes;
}

}  // namespace muster
