// The program `muster-trace`: merges timelines and explains what the ranks of a failed exchange left behind.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "base/command/command_set.hpp"
#include "base/command/manual.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "comm/trace/explain.hpp"
#include "comm/trace/merge.hpp"

namespace {

using namespace muster;

constexpr option_row merge_options[]{{"output", 'o', "FILE", "the merged timeline", ""}};

constexpr command_row merge_row{
    .name = "merge",
    .summary = "write the timelines of all ranks as one",
    .synopsis = "FOLDER -o FILE",
    .examples = "  muster-trace merge timelines -o all.json\n",
    .options = merge_options,
    .description =
        "Reads the timelines that ranks wrote to FOLDER (MUSTER_TIMELINE=FOLDER), moves them to rank 0's clock and\n"
        "writes one JSON file, for https://ui.perfetto.dev or chrome://tracing. A process keeps its track through all\n"
        "generations; a mark at the start of each later one says which ranks are gone.",
    .most_words = 1,
};

constexpr command_row explain_row{
    .name = "explain",
    .summary = "show where each rank was when the exchange failed",
    .synopsis = "FOLDER",
    .examples = "  muster-trace explain flight\n",
    .description = "Reads the flight recorders that ranks wrote to FOLDER (MUSTER_FLIGHT_RECORDER=FOLDER).",
    .most_words = 1,
};

std::string folder_of(given_options const& given) {
    if (given.words().empty())
        throw error(errc::usage, fmt::format("{}: the folder is missing; give the one that the ranks wrote to", given.command()));
    return given.words().front();
}

int merge(given_options const& given) {
    auto const folder = folder_of(given);
    auto const out = given.needed("output");
    auto const done = merge_timelines(find_timelines(folder), out);
    fmt::print(stderr, "muster-trace: {} events of {} timelines in {}; clocks agree within {:.1f} us\n", done.events, done.files,
               out, done.worst_error_us);
    for (auto const& each : done.losses) fmt::print(stderr, "muster-trace: {}\n", each);
    if (done.dropped != 0)
        fmt::print(stderr, "muster-trace: note: {} events are missing: they came faster than they could be written\n",
                   done.dropped);
    for (auto const& each : done.ended)
        fmt::print(stderr, "muster-trace: note: {} ends early: its rank was killed or failed\n", each);
    return 0;
}

int explain_folder(given_options const& given) {
    fmt::print("{}", explain(read_flight_dumps(folder_of(given))));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return run_main("muster-trace", [&] {
        auto const variables = environment::capture();
        init_log(variables.get_or("MUSTER_LOG", "warning"));
        command_set commands({.name = "muster-trace",
                              .summary = "timelines and flight recorders of an exchange",
                              .example = "muster-trace merge FOLDER -o all.json",
                              .closing = "Exit codes: 0 done, 2 wrong usage, 125 failed.\n",
                              .version = {},
                              .width = help_width(variables)});
        commands.add(merge_row, merge);
        commands.add(explain_row, explain_folder);
        add_manual_command(commands);
        add_completion_command(commands);
        return commands.run({argv + 1, argv + argc});
    });
}
