#include "bench/scaling/plan_point.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/process/run_captured.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "bench/tools/checked_json.hpp"

namespace muster {

namespace {

constexpr std::chrono::minutes plan_limit{2};  // it may examine nodes

std::string text_or_nothing(checked_json const& from, std::string_view name) {
    if (!from.has(name) || from.at(name).value().is_null()) return {};
    return from.at(name).value().is_string() ? from.at(name).text() : from.at(name).value().dump();
}

/// Returns the GPU's index, if it has one.
std::string gpu_of(checked_json const& rank) {
    if (!rank.has("gpu") || !rank.at("gpu").value().is_object()) return text_or_nothing(rank, "gpu");
    auto const gpu = rank.at("gpu");
    return gpu.has("index") ? text_or_nothing(gpu, "index") : gpu.value().dump();
}

}  // namespace

std::vector<std::string> point_options(study_plan const& plan, int ranks) {
    std::vector<std::string> out{"-n", std::to_string(ranks)};
    out.insert(out.end(), plan.launch.begin(), plan.launch.end());
    return out;
}

planned_point read_planned_point(nlohmann::json const& document, int ranks) {
    checked_json const from(document, "muster plan --json");
    planned_point out;
    out.scheduler = from.at("scheduler").text();
    out.point.ranks = ranks;
    out.point.nodes = 0;
    bool unknown = false;
    for (auto const& node : from.at("nodes").items()) {
        auto const here = node.at("ranks").integer(0, 10'000'000);
        if (here == 0) continue;
        auto const name = node.at("name").text();
        ++out.point.nodes;
        out.point.hosts.push_back(name);
        if (node.at("cores").value().is_number()) {
            auto const cores = node.at("cores").integer(0, 1'000'000);
            out.point.oversubscribed |= cores < here;
            out.point.cores += static_cast<int>(cores);
        } else {
            unknown = true;
        }
        if (node.at("gpus").value().is_number() && node.at("gpus").integer() > 0)
            out.point.gpus += fmt::format("{}{} on {}", out.point.gpus.empty() ? "" : ", ", node.at("gpus").integer(), name);
    }
    if (unknown) out.point.cores = 0;
    if (out.point.nodes == 0) from.at("nodes").fail("holds no node with ranks");
    for (auto const& rank : from.at("ranks").items())
        out.point.places.push_back({static_cast<int>(rank.at("rank").integer(0, 10'000'000)), rank.at("host").text(),
                                    text_or_nothing(rank, "cpus"), gpu_of(rank)});
    return out;
}

planned_point plan_point(std::string const& muster, study_plan const& plan, int ranks, environment const& variables) {
    std::vector<std::string> command{muster, "plan", "--json"};
    for (auto const& word : point_options(plan, ranks)) command.push_back(word);
    auto const said = run_captured(command, variables, plan_limit);
    if (said.exit_status != 0) {
        std::string const why(trim(said.err.empty() ? said.out : said.err));
        bool const names_option = why.find(" -n") != why.npos || why.find("--") != why.npos;
        throw_error(errc::placement, "{} ended with exit code {}: {}{}", shell_join(command), said.exit_status, why,
                    names_option ? "\nhere -n is --ranks, and other options of muster run go into --run-options '…'" : "");
    }
    return read_planned_point(parse_json(said.out, "muster plan --json"), ranks);
}

}  // namespace muster
