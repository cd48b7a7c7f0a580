#include "launch/run/run_job.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "launch/placement/local_placement.hpp"
#include "launch/placement/mapping.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/preflight/check_nodes.hpp"
#include "launch/run/run_embedded.hpp"
#include "launch/run/run_on_engine.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/system/host_name.hpp"

namespace muster {

namespace {

/// A command that was run once is not run again: schedulers' programs take 10 ms each and say the same.
scheduler_sources asking_once(scheduler_sources sources) {
    auto const said = std::make_shared<std::map<std::vector<std::string>, command_output>>();
    return {sources.variables, sources.read_file,
            [said, run = sources.run_command](std::vector<std::string> const& argv) {
                auto const known = said->find(argv);
                return known != said->end() ? known->second : said->emplace(argv, run(argv)).first->second;
            },
            sources.this_node};
}

/// Whether all ranks are on the node that this process is on: then it starts them itself.
bool all_here(allocation const& given, mapping const& map) {
    if (given.scheduler == scheduler_kind::local) return true;
    for (std::size_t n = 0; n < given.nodes.size(); ++n)
        if (map.ranks_per_node[n] > 0 && !is_this_host(given.nodes[n])) return false;
    return true;
}

}  // namespace

int run_job(run_options const& options, environment const& inherited, std::string const& session_dir, int guardian_fd) {
    std::optional<topology> machine;  // looked at once, where it is needed
    auto const this_node = [&]() -> node {
        if (!machine) machine = discover_here(inherited);
        return node_of(*machine);
    };
    auto const sources = asking_once(real_sources(inherited, this_node));
    std::vector<std::string> tried;
    auto given = read_allocation(sources, options.from, &tried);
    // Of one node that is this one nobody else knows more.
    if (given.nodes.size() == 1 && !given.nodes[0].gpus && is_this_host(given.nodes[0])) {
        given.nodes[0].gpus = this_node().gpus;
        given.nodes[0].gpus_counted = true;
    }
    if (options.verbose)
        for (auto const& line : tried) fmt::print(stderr, "muster: {}\n", line);
    if (options.signal_before_end && !given.ends_at && !options.quiet)
        fmt::print(stderr, "muster: note: --signal-before-end: nothing here tells when the time is up, so no signal will come\n");
    if (!options.dry_run && !options.print_env) given = check_nodes(options, inherited, sources, given, session_dir);
    auto const map = map_ranks(given, options.place);
    bool const here = all_here(given, map);
    if (options.engine == "embedded" && !here)
        throw error(
            errc::unavailable,
            fmt::format("--engine embedded starts ranks on this node, {}, only, and {} of {} nodes are elsewhere; leave it out",
                        short_host_name(), map.nodes_used(), given.nodes.size()));
    if (!here || (!options.engine.empty() && options.engine != "embedded"))
        return run_on_engine(options, inherited, sources, given, map, session_dir, guardian_fd);
    if (!machine) machine = discover_here(inherited);
    return run_embedded(options, inherited, place_here(std::move(*machine), given, map, options.place), session_dir, guardian_fd);
}

}  // namespace muster
