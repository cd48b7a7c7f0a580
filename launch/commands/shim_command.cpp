#include "launch/commands/commands.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/preflight/node_probe.hpp"
#include "launch/shim/rank_shim.hpp"
#include "launch/shim/shim_guard.hpp"
#include "launch/system/host_name.hpp"

namespace muster {

int shim_command(std::vector<std::string> const& args, environment const& variables) try {
    if (args.size() == 2 && args[0] == "--probe") {
        auto const first = parse_integer(args[1]);
        // Not by return: what hangs in a thread must not keep the process.
        if (first) std::_Exit(run_probe(variables, static_cast<int>(*first)));
    }
    auto const watch = [&](shim_parents const& parents) { return rank_shim(variables, parents).run(); };
    if (args.size() == 1 && args[0] == "--guarded") return run_behind_guard(watch);
    if (!args.empty())
        throw error(errc::usage, "muster shim is what muster run starts beside each rank; start ranks with: muster run");
    return watch(own_parents());
} catch (error const& e) {
    throw error(e.code(), fmt::format("on {}: {}", short_host_name(), e.what()));
}

}  // namespace muster
