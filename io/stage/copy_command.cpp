#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <optional>

#include "base/error.hpp"
#include "base/units.hpp"
#include "comm/fail_together.hpp"
#include "io/stage/commands.hpp"
#include "io/stage/copy_options.hpp"
#include "io/stage/on_nodes.hpp"
#include "io/stage/progress.hpp"
#include "io/stage/unpack_sources.hpp"

namespace muster::stage {

namespace {

constexpr option_row copy_options[]{
    {"shard", 0, "", "each node gets its part of the files, about equal in bytes, not all", ""},
    {"unpack", 0, "", "unpack sources that are archives, such as packed environments, to DST/NAME", ""},
    {"unpack-limit", 0, "BYTES", "most that one archive may become; default: 1100 times its size, or 64MiB", ""},
    {"check", 0, "fast|full", "files that are there: trust size and time, or read them", "fast"},
    {"fsync", 0, "", "end when everything is on the disks", ""},
    {"threads", 0, "N", "threads of each node; default: twice its processors, 8 to 32", ""},
    {"chunk", 0, "BYTES", "read, send and check in chunks; default: 4MiB, or what the stripes ask for", ""},
    {"dry-run", 0, "", "say what would be copied, and whether there is space; write nothing", ""},
    {"progress", 0, "HOW", "none, bar, lines or json; default: bar on a terminal, else lines", ""},
    {"json", 0, "", "report as JSON", ""},
};

std::optional<std::uint64_t> unpack_limit_of(given_options const& given) {
    if (!given.has("unpack-limit")) return {};
    if (!given.has("unpack"))
        throw error(errc::usage, fmt::format("{}: --unpack-limit without --unpack; give both", given.command()));
    try {
        return parse_bytes(given.text("unpack-limit"), "--unpack-limit");
    } catch (parse_error const& e) {
        throw error(errc::usage, e.what());
    }
}

}  // namespace

constexpr command_row copy_row{
    .name = "copy",
    .summary = "bring files and folders to a folder of every node",
    .synopsis = "SRC... DST [options]",
    .examples =
        "  muster run -- muster stage copy /project/imagenet /dev/shm/$USER     to every node\n"
        "  muster-stage copy data.h5 pack.tar.gz /tmp/$USER                     to this one\n",
    .options = copy_options,
    .description =
        "The nodes read each byte once, together, and send it to one another. A file gets its name when it is whole. Run it "
        "again\n"
        "after a failure: it goes on where it was. `DST/.muster-stage` keeps checksums for `verify`.",
    .most_words = 1000,
};

int copy_command(given_options const& given, identity const& who, environment const& variables) {
    copy_request request = copy_request_of(given, variables);
    request.sharded = given.has("shard");
    auto const most_bytes = unpack_limit_of(given);
    progress_style const style = parse_progress(given.text("progress"));
    return on_nodes(who, [&](communicator& nodes) {
        auto const begin = std::chrono::steady_clock::now();
        bool const shown = nodes.rank() == 0;
        std::function<void(std::uint64_t)> show;
        request.progress = [&](std::uint64_t done, std::uint64_t total) {
            if (!show) show = progress("copy", total, shown ? style : progress_style::none);
            show(done);
        };
        copy_report const report = copy_tree(request, nodes);
        double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (given.has("unpack") && !request.dry_run) {
            auto const unpack = [&] { unpack_sources(request, most_bytes); };
            if (nodes.size() == 1)
                unpack();
            else
                run_on_all(nodes, "unpack in " + request.target, unpack);
        }
        print_copy(request, report, nodes, seconds, given.has("json"));
        return 0;
    });
}

}  // namespace muster::stage
