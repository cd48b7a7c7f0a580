// The program `muster-bench` calls the command that the first word names.
#include <string>
#include <vector>

#include "base/command/command_set.hpp"
#include "base/command/manual.hpp"
#include "base/environment.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "bench/gpu/gpu_check.hpp"
#include "bench/report/report_command.hpp"
#include "bench/tools/commands.hpp"

int main(int argc, char** argv) {
    using namespace muster;
    return run_main("muster-bench", [&] {
        auto const variables = environment::capture();
        init_log(variables.get_or("MUSTER_LOG", "warning"));
        std::vector<std::string> const words(argv + 1, argv + argc);
        auto const line = "muster-bench " + shell_join(words);  // for the records of what was measured
        command_set commands({.name = "muster-bench",
                              .summary = "measure scaling and collectives",
                              .example = "muster-bench scale --ranks 1,2,4 --net mnist --data fashion-mnist.h5",
                              .closing = "",
                              .version = {},
                              .width = help_width(variables)});
        commands.add(scale_row, [&](auto const& given) { return scale_command(given, variables, line); });
        commands.add(report_row, [&](auto const& given) { return report_command(given, variables); });
        commands.add(steps_row, [&](auto const& given) { return steps_command(given, variables); });
        commands.add(collectives_row, [&](auto const& given) { return collectives_command(given, variables, line); });
        commands.add(gpu_check_row, [&](auto const& given) { return gpu_check_command(given, variables); });
        commands.add_unread(collectives_rank_row, [&](auto const& args) { return collectives_rank(args, variables); });
        commands.add_unread(gpu_check_step_row, [&](auto const& args) { return gpu_check_step(args, variables); });
        add_manual_command(commands);
        add_completion_command(commands);
        return commands.run(words);
    });
}
