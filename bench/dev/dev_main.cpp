// The program `muster-bench-dev`, which is not installed: it measures the exchange for muster's developers.
#include <string>
#include <vector>

#include "base/command/command_set.hpp"
#include "base/environment.hpp"
#include "base/log.hpp"
#include "bench/dev/exchange_command.hpp"

int main(int argc, char** argv) {
    using namespace muster;
    return run_main("muster-bench-dev", [&] {
        auto const variables = environment::capture();
        init_log(variables.get_or("MUSTER_LOG", "warning"));
        std::vector<std::string> const words(argv + 1, argv + argc);
        command_set commands({.name = "muster-bench-dev",
                              .summary = "measure the exchange, compared with MPI; the scripts in bench/dev measure the rest",
                              .example = "muster run -n 2 -- muster-bench-dev exchange",
                              .closing = "",
                              .version = {},
                              .width = help_width(variables)});
        commands.add(exchange_row, [&](auto const& given) { return exchange_command(given, variables); });
        return commands.run(words);
    });
}
