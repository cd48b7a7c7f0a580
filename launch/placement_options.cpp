#include "launch/placement_options.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "base/error.hpp"

namespace muster {

namespace po = boost::program_options;

char const* const placement_help =
    R"(  -n [-np] N                  ranks; without it one for each GPU, or each core
  --slots-per-node N          take N slots, whatever the node has (to oversubscribe)
  --ranks-per-gpu N           let N ranks share each GPU [1]
  --bind-to WHAT              share (of the cores near its GPU), core, numa or none [share]
  --cpus-per-rank N           cores of each rank
  --scheduler local           use this node alone, also inside a job of several nodes
)";

namespace {

std::optional<int> positive(po::variables_map const& values, std::string const& name, std::string const& shown) {
    if (values.count(name) == 0) return std::nullopt;
    int const value = values[name].as<int>();
    if (value < 1) throw error(errc::usage, fmt::format("{} {}: must be at least 1", shown, value));
    return value;
}

}  // namespace

void add_placement_options(po::options_description& description) {
    description.add_options()("ranks,n", po::value<int>())("np", po::value<int>())("slots-per-node", po::value<int>())(
        "ranks-per-gpu", po::value<int>())("bind-to", po::value<std::string>())("cpus-per-rank", po::value<int>())(
        "scheduler", po::value<std::string>());
}

request read_placement_options(po::variables_map const& values) {
    request wanted;
    wanted.ranks = positive(values, "ranks", "-n");
    if (!wanted.ranks) wanted.ranks = positive(values, "np", "--np");
    wanted.slots_per_node = positive(values, "slots-per-node", "--slots-per-node");
    wanted.ranks_per_gpu = positive(values, "ranks-per-gpu", "--ranks-per-gpu").value_or(1);
    wanted.cpus_per_rank = positive(values, "cpus-per-rank", "--cpus-per-rank");
    if (values.count("bind-to") != 0) wanted.bind_to = parse_bind_policy(values["bind-to"].as<std::string>());
    return wanted;
}

bool read_scheduler_local(po::variables_map const& values) {
    if (values.count("scheduler") == 0) return false;
    auto const word = values["scheduler"].as<std::string>();
    if (word != "local")
        throw error(errc::usage, fmt::format("--scheduler {}: this version knows only local, this node alone", word));
    return true;
}

}  // namespace muster
