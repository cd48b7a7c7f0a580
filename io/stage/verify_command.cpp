#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/units.hpp"
#include "comm/run_with_ranks.hpp"
#include "io/copy/copy_tree.hpp"
#include "io/copy/verify_tree.hpp"
#include "io/dataset/checksum.hpp"
#include "io/dataset/dataset.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/stage/commands.hpp"
#include "io/stage/on_nodes.hpp"
#include "io/stage/progress.hpp"

namespace muster::stage {

namespace {

constexpr option_row verify_options[]{
    {"split", 0, "NAME", "only this split", ""},
    {"progress", 0, "HOW", "none, bar, lines or json; default: bar on a terminal, else lines", "", false, "none bar lines json"},
    {"json", 0, "", "report as JSON", ""},
};

int verify(std::string const& path, given_options const& given, communicator& ranks) {
    bool const first = ranks.rank() == 0;

    progress_style const style = first ? parse_progress(given.text("progress")) : progress_style::none;
    std::vector<std::string> splits;
    if (given.has("split"))
        splits = {given.text("split")};
    else
        splits = dataset::splits(path, ranks);
    nlohmann::ordered_json report = nlohmann::ordered_json::array();
    for (std::string const& split : splits) {
        auto const begin = std::chrono::steady_clock::now();
        dataset const checked = dataset::open(path, ranks, split);
        std::uint64_t const bytes = static_cast<std::uint64_t>(checked.size()) * (checked.image_bytes() + checked.label_bytes());
        hyperslab const mine = shard_of_blocks(checked.size(), checked.info().checksum_block_samples, ranks.rank(), ranks.size());
        std::uint64_t const total = mine.count * (checked.image_bytes() + checked.label_bytes());
        auto const show = progress("verify /" + split, style);
        show(0, total);
        checked.verify([&](std::uint64_t done) { show(done, total); });
        double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (!first) continue;
        if (given.has("json"))
            report.push_back({{"file", path},
                              {"split", split},
                              {"ok", true},
                              {"samples", checked.size()},
                              {"bytes", bytes},
                              {"seconds", seconds},
                              {"checksum_images", format_checksum(checked.info().checksum_images)},
                              {"checksum_labels", format_checksum(checked.info().checksum_labels)}});
        else
            fmt::print("{}: /{}: {} samples, {} in {}: ok\n", path, split, checked.size(), format_bytes(bytes),
                       format_duration(duration{seconds}));
    }
    if (first && given.has("json")) fmt::print("{}\n", report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
}

}  // namespace

constexpr command_row verify_row{
    .name = "verify",
    .summary = "read a dataset file, or a folder that copy has brought, and check it",
    .synopsis = "FILE|FOLDER [options]",
    .examples =
        "  muster-stage verify fashion.h5\n"
        "  muster run -- muster stage verify /dev/shm/$USER        what copy has brought, on every node\n"
        "  muster run -n 4 -- muster-stage verify fashion.h5       the same on 4 ranks, each with its part\n",
    .options = verify_options,
    .description =
        "Reads every sample or file. Ends with 0 if all is right; else it prints which samples, or chunks of files, are damaged.",
    .most_words = 1,
};

int verify_command(given_options const& given, identity const& who, environment const& variables) {
    if (given.words().empty()) throw error(errc::usage, "muster-stage verify: the dataset file is missing; give its name");
    std::string const path = given.words().front();
    if (is_copied_tree(path)) return verify_copy(path, given, who, variables);
    return run_with_ranks("muster-stage", who, options_for_files(who),
                          [&](communicator& ranks) { return verify(path, given, ranks); });
}

namespace {

constexpr std::size_t most_faults_told = 20;

void throw_faults(tree_check const& check) {
    if (check.faults.empty()) return;
    std::string text = check.faults.front();
    for (std::size_t i = 1; i < std::min(check.faults.size(), most_faults_told); ++i) text += "\n" + check.faults[i];
    if (check.faults.size() > most_faults_told) text += fmt::format("\nand {} more", check.faults.size() - most_faults_told);
    throw error(errc::invalid_data, text + "\nrun muster stage copy again with --check full, which mends them");
}

}  // namespace

int verify_copy(std::string const& path, given_options const& given, identity const& who, environment const& variables) {
    progress_style const style = parse_progress(given.text("progress"));
    return on_nodes(who, variables, [&](communicator& nodes) {
        auto const begin = std::chrono::steady_clock::now();
        tree_check check;
        auto const verify = [&] {
            check = verify_tree(path, copy_threads(), progress("verify", nodes.rank() == 0 ? style : progress_style::none));
            throw_faults(check);
        };
        run_step(nodes, "verify " + path, verify, member_is::node);
        std::uint64_t const files = sum_of(nodes, check.files), bytes = sum_of(nodes, check.bytes);
        double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        std::string const where = nodes.size() == 1 ? std::string() : fmt::format(" on {} nodes", nodes.size());
        if (nodes.rank() == 0)
            fmt::print("{}: {} files{}, {} in {}: ok\n", path, files, where, format_bytes(bytes),
                       format_duration(duration{seconds}));
        return 0;
    });
}

}  // namespace muster::stage
