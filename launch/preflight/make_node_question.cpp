#include "launch/preflight/make_node_question.hpp"

#include <algorithm>
#include <string>

#include "launch/ranks/exports.hpp"
#include "launch/system/absolute_path.hpp"
#include "launch/system/host_name.hpp"

namespace muster {

namespace {

constexpr std::size_t most_names = 256;

bool is_number(std::string_view name) {
    return name.find_first_not_of("0123456789.") == std::string_view::npos || name.find(':') != std::string_view::npos;
}

/// Of all nodes, or of the first and an even sample, what they are called.
std::vector<std::string> names_to_resolve(allocation const& given, std::vector<int> const& nodes) {
    std::vector<std::string> names;
    std::size_t const step = nodes.size() / most_names + 1;
    for (std::size_t i = 0; i < nodes.size(); i += step) {
        auto const& node = given.nodes[static_cast<std::size_t>(nodes[i])];
        for (auto const& one : {std::string(without_user(node.name)), node.address})
            if (!one.empty() && !is_number(one) && std::find(names.begin(), names.end(), one) == names.end())
                names.push_back(one);
    }
    return names;
}

}  // namespace

node_question make_node_question(run_context const& run, std::vector<int> const& nodes, int node) {
    auto const& options = run.options;
    node_question what;
    if (!options.command.empty()) {
        what.program = options.command.front();
        what.working_dir = absolute_path(options.working_dir.empty() ? "." : options.working_dir);
    }
    what.variables = variables_for_ranks(run.inherited, options.exports);
    leave_out(what.variables, options.unexported, options.exports);
    what.names = names_to_resolve(run.given, nodes);
    what.address = run.given.nodes[static_cast<std::size_t>(node)].address;
    what.network_interface = options.network_interface;
    return what;
}

}  // namespace muster
