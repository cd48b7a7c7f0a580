// The program `muster-bench-dev`, which is not installed: it measures muster for its developers, next to other tools.
#include <string>
#include <vector>

#include "base/command/command_set.hpp"
#include "base/environment.hpp"
#include "base/log.hpp"
#include "bench/dev/dev_commands.hpp"

int main(int argc, char** argv) {
    using namespace muster;
    return run_main("muster-bench-dev", [&] {
        auto const variables = environment::capture();
        init_log(variables.get_or("MUSTER_LOG", "warning"));
        std::vector<std::string> const words(argv + 1, argv + argc);
        command_set commands({.name = "muster-bench-dev",
                              .summary = "measure launching, loading, the exchange and recovery, beside other tools",
                              .example = "muster-bench-dev launch",
                              .closing = "",
                              .version = {},
                              .width = help_width(variables)});
        commands.add(launch_row, [&](auto const& given) { return launch_command(given, variables); });
        commands.add(io_row, [&](auto const& given) { return io_command(given, variables); });
        commands.add(exchange_row, [&](auto const& given) { return exchange_command(given, variables); });
        commands.add(recover_row, [&](auto const& given) { return recover_command(given, variables); });
        return commands.run(words);
    });
}
