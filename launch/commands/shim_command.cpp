#include "launch/commands/commands.hpp"

#include "base/command/given_options.hpp"
#include "base/throw_error.hpp"
#include "launch/shim/rank_shim.hpp"
#include "launch/shim/shim_guard.hpp"
#include "launch/system/home_folder.hpp"
#include "launch/system/network.hpp"

namespace muster {

int shim_command(std::vector<std::string> const& args, environment const& inherited) try {
    auto variables = inherited;
    provide_home(variables);
    static constexpr option_row rows[]{{.name = "guarded"}};
    given_options const given("muster shim, which muster run starts beside each rank", rows, 0, args);
    auto const watch = [&](shim_parents const& parents) { return rank_shim(variables, parents).run(); };
    return given.has("guarded") ? run_behind_guard(watch) : watch(own_parents());
} catch (error const& e) {
    throw_error(e.code(), "on {}: {}", short_host_name(), e.what());
}

}  // namespace muster
