#include <fmt/format.h>

#include <chrono>
#include <functional>

#include "base/error.hpp"
#include "base/units.hpp"
#include "comm/fail_together.hpp"
#include "io/copy/copy_tree.hpp"
#include "io/copy/verify_tree.hpp"
#include "io/stage/commands.hpp"
#include "io/stage/on_nodes.hpp"
#include "io/stage/progress.hpp"

namespace muster::stage {

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

int verify_copy(std::string const& path, given_options const& given, identity const& who) {
    progress_style const style = parse_progress(given.text("progress"));
    return on_nodes(who, [&](communicator& nodes) {
        auto const begin = std::chrono::steady_clock::now();
        tree_check check;
        std::function<void(std::uint64_t)> show;
        auto const verify = [&] {
            check = verify_tree(path, copy_threads(), [&](std::uint64_t done, std::uint64_t total) {
                if (!show) show = progress("verify", total, nodes.rank() == 0 ? style : progress_style::none);
                show(done);
            });
            throw_faults(check);
        };
        if (nodes.size() == 1)
            verify();
        else
            run_on_all(nodes, "verify " + path, verify);
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
