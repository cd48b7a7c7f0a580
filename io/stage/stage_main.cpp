// The program `muster-stage`: converts, verifies and shows datasets, and copies files to the nodes and back. Alone it is one process without MPI; started by muster run,
// mpirun or srun its ranks work together.

#include "base/command/command_set.hpp"
#include "base/command/manual.hpp"
#include "base/environment.hpp"
#include "base/log.hpp"
#include "io/hdf5/hdf5.hpp"
#include "io/stage/commands.hpp"
#include "pmix/identity.hpp"

/// Rank 0 alone has reported failures that the ranks agreed on (comm/run_with_ranks.hpp). Of any other each rank reports its
/// own, since the first that ends may be the only one that the launcher lets finish.
int main(int argc, char** argv) {
    using namespace muster;
    return run_main("muster-stage", [&] {
        hdf5::keep_out_of_exit();
        environment const variables = environment::capture();
        identity const who = identify(variables);
        bool const is_alone = who.world_size <= 1;
        init_log(variables.get_or("MUSTER_LOG", "warning"), is_alone ? "" : who.host, is_alone ? -1 : who.rank);
        command_set commands({.name = "muster-stage",
                              .summary = "datasets for training",
                              .example = "muster-stage convert --images I.gz --labels L.gz -o out.h5",
                              .closing = "Exit codes: 0 done, 2 wrong usage, 125 failed.\n",
                              .version = {},
                              .width = help_width(variables)},
                             who.rank == 0);
        commands.add(stage::convert_row, [&](auto const& given) { return stage::convert_command(given, who); });
        commands.add(stage::verify_row, [&](auto const& given) { return stage::verify_command(given, who, variables); });
        commands.add(stage::info_row, [&](auto const& given) { return stage::info_command(given, who); });
        commands.add(stage::copy_row, [&](auto const& given) { return stage::copy_command(given, who, variables); });
        commands.add(stage::out_row, [&](auto const& given) { return stage::out_command(given, who, variables); });
        commands.add(stage::clean_row, [&](auto const& given) { return stage::clean_command(given, who, variables); });
        add_manual_command(commands);
        add_completion_command(commands);
        return commands.run({argv + 1, argv + argc});
    });
}
