#include "launch/run/prepare_run.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/command/print_note.hpp"
#include "base/process/files.hpp"
#include "base/process/this_process.hpp"
#include "base/throw_error.hpp"
#include "launch/ranks/rank_variables.hpp"
#include "launch/system/network.hpp"
#include "pmix/library/random_bits.hpp"

namespace muster {

namespace {

std::vector<identity> identify_ranks(run_plan const& run) {
    auto const& counts = run.map.ranks_per_node;
    std::vector<int> node_ranks(counts.size(), -1);  // the position among the nodes in use
    int used = 0;
    for (std::size_t n = 0; n < counts.size(); ++n)
        if (counts[n] > 0) node_ranks[n] = used++;
    auto const nspace = pmix::make_job_name(short_host_name());
    auto const places = run.map.places();
    int const size = static_cast<int>(places.size());
    std::vector<identity> ranks;
    for (auto const& place : places) {
        auto const node = static_cast<std::size_t>(place.node);
        ranks.push_back({nspace, static_cast<int>(ranks.size()), size, place.local_rank, counts[node], node_ranks[node], used,
                         run.given.nodes[node].name, identity::source::muster});
    }
    return ranks;
}

std::vector<identity> identify_spares(run_plan const& run, std::vector<identity> const& ranks) {
    auto const& counts = run.waiting.ranks_per_node;
    int const used = run.map.nodes_used();
    std::vector<identity> spares;
    int host = -1, before = -1;
    for (auto const& place : run.waiting.places()) {
        auto const node = static_cast<std::size_t>(place.node);
        if (std::exchange(before, place.node) != place.node) ++host;
        auto who = ranks.front();
        who.rank = who.world_size + static_cast<int>(spares.size());
        who.local_rank = place.local_rank;
        who.local_size = counts[node];
        who.node_rank = used + host;
        who.node_count = used + run.waiting.nodes_used();
        who.host = run.given.nodes[node].name;
        spares.push_back(std::move(who));
    }
    return spares;
}

}  // namespace

run_preparation prepare_run(run_plan const& run) {
    auto const& options = run.options;
    int const size = run.map.world_size();
    if (options.print_env && *options.print_env >= size)
        throw_error(errc::usage, "--print-env {}: there is no such rank; give one from 0 to {}", *options.print_env, size - 1);
    if (!run.map.note.empty() && !options.quiet && run.life.is_first()) print_note(run.map.note);
    auto variables = variables_for_ranks(run.inherited, options.exports);
    variables.set("MUSTER_LIFE", std::to_string(run.life.first_life + run.life.now.number));
    if (options.is_elastic()) {
        variables.set("MUSTER_GENERATION", std::to_string(run.life.now.number));
        variables.set("MUSTER_LAST_GENERATION", std::to_string(options.restarts.most));
    }
    auto sent = variables;
    leave_out(sent, options.unexported, options.exports);
    auto ranks = identify_ranks(run);
    auto spares = identify_spares(run, ranks);
    return {std::move(ranks),
            std::move(spares),
            variables,
            std::move(sent),
            options.working_dir.empty() ? "" : absolute_path(options.working_dir),
            find_python_folders(self_program(), options.as_horovod),
            size <= most_tensorflow_workers};
}

line_format output_format(run_options const& options, identity const& who, int generation, int spare) {
    line_format how;
    if (options.tag_output)
        how.tag = fmt::format("[{}:{}{}] ", who.host, spare < 0 ? std::to_string(who.rank) : fmt::format("spare {}", spare),
                              generation < 0 ? "" : fmt::format(" g{}", generation));
    how.timestamp = options.timestamp_output;
    how.raw = who.world_size == 1 && spare < 0 && !options.discovery.given();
    how.hidden = !options.shows(who.rank);
    return how;
}

}  // namespace muster
