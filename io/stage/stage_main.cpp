// The program `muster-stage`: a table of subcommands. Alone it is one process without MPI; started by muster run, mpirun or srun
// its ranks work together.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "io/stage/commands.hpp"
#include "pmix/identity.hpp"

namespace {

using namespace muster;

struct subcommand {
    char const* name;
    char const* what;
    int (*run)(std::vector<std::string> const& args, identity const& who);
};

constexpr subcommand subcommands[]{
    {"convert", "IDX files (MNIST, Fashion-MNIST, …) to one HDF5 dataset file", stage::convert_command},
    {"verify", "read a dataset file and check shapes, checksums and labels", stage::verify_command},
    {"info", "what a dataset file says about itself", stage::info_command},
};

void print_help() {
    fmt::print(
        "muster-stage {}: datasets for training\n\n  muster-stage convert --images I.gz --labels L.gz -o out.h5\n\ncommands "
        "(each has --help)\n",
        version());
    for (auto const& s : subcommands) fmt::print("  {:10}{}\n", s.name, s.what);
    fmt::print("\nExit codes: 0 done, 2 wrong usage, 125 failed.\n");
}

int dispatch(std::vector<std::string> const& words, identity const& who) {
    if (words.empty() || words.front() == "--help" || words.front() == "-h" || words.front() == "help") {
        if (who.rank == 0) print_help();
        return words.empty() ? 2 : 0;
    }
    if (words.front() == "--version") {
        if (who.rank == 0) fmt::print("muster-stage {}\n", version());
        return 0;
    }
    std::vector<std::string> names;
    for (auto const& s : subcommands) {
        if (words.front() == s.name) return s.run({words.begin() + 1, words.end()}, who);
        names.emplace_back(s.name);
    }
    auto const near = nearest(words.front(), names);
    throw error(errc::usage, fmt::format("no command '{}'{}; muster-stage --help lists them", words.front(),
                                         near ? fmt::format(", did you mean '{}'?", *near) : ""));
}

/// Failures that the ranks agreed on have been told by rank 0 alone (comm/run_with_ranks.hpp). Of any other each rank tells its
/// own, since the first that ends may be the only one that the launcher lets finish.
int run(std::vector<std::string> const& words) {
    identity who;
    try {
        environment const variables = environment::capture();
        who = identify(variables);
        init_log(variables.get_or("MUSTER_LOG", "warning"), who.world_size > 1 ? who.host : "",
                 who.world_size > 1 ? who.rank : -1);
        return dispatch(words, who);
    } catch (error const& e) {
        fmt::print(stderr, "muster-stage: error: {}\n", e.what());
        return exit_code(e.code());
    } catch (std::exception const& e) {
        fmt::print(stderr, "muster-stage: error: {}\n", e.what());
        return exit_code(errc::internal);
    }
}

}  // namespace

int main(int argc, char** argv) {
    return run({argv + 1, argv + argc});
}
