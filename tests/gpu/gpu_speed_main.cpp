// The program gpu_speed: measures what only a GPU's owner can, the exchange beside NCCL alone and the fusion kernels beside copies.
#include <string>
#include <vector>

#include "base/log.hpp"
#include "gpu_speed.hpp"

int main(int argc, char** argv) {
    using namespace muster;
    return run_main("gpu_speed", [&] {
        auto const variables = environment::capture();
        init_log(variables.get_or("MUSTER_LOG", "warning"));
        command_set commands({.name = "gpu_speed",
                              .summary = "measure the exchange and its kernels on GPUs",
                              .example = "muster run -n 2 -- gpu_speed exchange",
                              .closing = "",
                              .version = {}});
        commands.add(exchange_speed_row, [&](auto const& given) { return exchange_speed(given, variables); });
        commands.add(kernels_speed_row, [&](auto const& given) { return kernels_speed(given, variables); });
        return commands.run(std::vector<std::string>(argv + 1, argv + argc));
    });
}
