// The program cpu_speed: measures the exchange for muster's developers, as gpu_speed does on GPUs.
#include <string>
#include <vector>

#include "base/command/command_set.hpp"
#include "base/environment.hpp"
#include "base/log.hpp"
#include "tests/speed/exchange_speed.hpp"

int main(int argc, char** argv) {
    using namespace muster;
    return run_main("cpu_speed", [&] {
        auto const variables = environment::capture();
        init_log(variables.get_or("MUSTER_LOG", "warning"));
        std::vector<std::string> const words(argv + 1, argv + argc);
        command_set commands({.name = "cpu_speed",
                              .summary = "measure the exchange, compared with MPI; the scripts in tests/speed measure the rest",
                              .example = "muster run -n 2 -- cpu_speed exchange",
                              .closing = "",
                              .version = {},
                              .width = help_width(variables)});
        commands.add(exchange_speed_row, [&](auto const& given) { return exchange_speed(given, variables); });
        return commands.run(words);
    });
}
