#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "io/copy/verify_tree.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/stage/commands.hpp"
#include "io/stage/on_nodes.hpp"

namespace muster::stage {

namespace {

constexpr option_row clean_options[]{
    {"force", 0, "", "remove files too that have changed since they were copied", ""},
    {"dry-run", 0, "", "say what would be removed; remove nothing", ""},
};

}  // namespace

constexpr command_row clean_row{
    .name = "clean",
    .summary = "remove what copy has brought",
    .synopsis = "DST [options]",
    .examples = "  muster run -- muster stage clean /dev/shm/$USER     on every node\n",
    .options = clean_options,
    .description = "Removes what the manifest in DST lists and what copies that were ended have left, nothing else.",
    .most_words = 1,
};

int clean_command(given_options const& given, identity const& who, environment const& variables) {
    if (given.words().empty()) throw error(errc::usage, "muster-stage clean: the folder is missing; give its name");
    std::string const path = given.words().front();
    bool const dry_run = given.has("dry-run");
    return on_nodes(who, variables, [&](communicator& nodes) {
        tree_cleaning report;
        auto const clean = [&] { report = clean_tree(path, given.has("force"), dry_run); };
        run_step(nodes, "clean " + path, clean, member_is::node);
        for (std::string const& kept : report.kept)
            fmt::print(stderr, "{}{} has changed since it was copied: kept\n", nodes.size() == 1 ? "" : who.host + ": ",
                       without_controls(kept));
        std::uint64_t const removed = sum_of(nodes, report.removed), bytes = sum_of(nodes, report.bytes);
        std::string const where = nodes.size() == 1 ? std::string() : fmt::format(" on {} nodes", nodes.size());
        if (nodes.rank() == 0)
            fmt::print("{}: {} files ({}) {}removed{}\n", path, removed, format_bytes(bytes), dry_run ? "would be " : "", where);
        return 0;
    });
}

}  // namespace muster::stage
