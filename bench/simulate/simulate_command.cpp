#include "bench/simulate/simulate_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "bench/simulate/local_validation.hpp"
#include "bench/simulate/published_plot.hpp"
#include "bench/simulate/simulated_study.hpp"
#include "bench/simulate/validation.hpp"
#include "bench/tools/checked_json.hpp"
#include "bench/tools/gradient_sets.hpp"
#include "bench/tools/options.hpp"

namespace muster {

namespace {

constexpr option_row simulate_options[]{
    {"platform", 0, "NAME", "dgx-a100, dgx-h100, polaris or perlmutter", ""},
    {"latency-us", 0, "US", "instead of a platform: one rank a node, links of this latency", ""},
    {"link-gbs", 0, "GB/s", "and of this rate", "10"},
    {"ranks", 0, "LIST", "numbers of ranks", "1,2,4,8,16,32"},
    {"network", 0, "NAME", "training steps of mnist, cifar10, resnet50 or gpt2-small", ""},
    {"gradient-bytes", 0, "SIZES", "without --network: allreduces of these sizes", "4KiB,1MiB,64MiB"},
    {"in-flight", 0, "N", "allreduces of a size that are started together", "1"},
    {"compute-ms", 0, "MS", "of a step: a third forward, two thirds backward", ""},
    {"input-ms", 0, "MS", "waiting for the loader before each step", "0"},
    {"bucket-bytes", 0, "SIZE", "of the gradient reducer", "1MiB"},
    {"protocol", 0, "NAME", "published: as the published 1-32 GPU table was run; fast: bound, fast loader, overlap", "fast"},
    {"validate", 0, "", "hold the platform (or all) against published bus bandwidths", ""},
    {"measured", 0, "FILE", "with --validate: results.json of the built-in training on this machine, on 1 rank and more", ""},
    {"collectives", 0, "FILE", "and --json of muster-bench collectives-here on 2 ranks: the link is fitted to its messages", ""},
    {"plot", 0, "FILE.svg", "of mnist or cifar10: both protocols beside the published table", ""},
    {"json", 0, "FILE|-", "all of it (schema muster.simulation/1)", ""},
};

double milliseconds(given_options const& given, std::string_view name) {
    double const value = given.real(name);
    if (!(value >= 0)) throw error(errc::usage, fmt::format("--{} {}: expected 0 or more milliseconds", name, given.text(name)));
    return value * 1e-3;
}

platform_model platform_of(given_options const& given) {
    if (given.has("platform") == given.has("latency-us"))
        throw error(errc::usage, fmt::format("{}: give --platform NAME, or --latency-us and --link-gbs", given.command()));
    if (given.has("platform")) return platform_named(given.text("platform"));
    double const gbs = given.real("link-gbs"), latency = milliseconds(given, "latency-us") * 1e3;
    if (!(gbs > 0)) throw error(errc::usage, fmt::format("--link-gbs {}: expected more than 0", given.text("link-gbs")));
    return plain_link(latency, gbs);
}

/// Gradients become ready from the last layer to the first.
void set_network(simulation_plan& plan, given_options const& given) {
    auto const set = gradients_of(plan.network);
    plan.job.tensors.assign(set.elements.rbegin(), set.elements.rend());
    plan.job.bucket_bytes = parse_bytes(given.text("bucket-bytes"), "--bucket-bytes");
    plan.job.input_s = milliseconds(given, "input-ms");
    bool const in_table = plan.network == "mnist" || plan.network == "cifar10";
    if (plan.published) {
        if (!in_table || given.has("compute-ms"))
            throw error(errc::usage,
                        "--protocol published is for --network mnist and cifar10, without --compute-ms: its steps "
                        "come from the published table");
        // As the published runs: all gradients fused into one buffer, the loss averaged at every step.
        if (!given.has("bucket-bytes")) plan.job.bucket_bytes = set.parameters() * sizeof(float);
        plan.job.loss_each_step = true;
    }
    if (given.has("compute-ms")) {
        double const compute = milliseconds(given, "compute-ms");
        plan.job.forward_s = compute / 3;
        plan.job.backward_s = compute * 2 / 3;
    } else if (in_table)
        plan.fit = fit_published(published_points(plan.network));
    else
        throw error(errc::usage,
                    fmt::format("--network {}: its compute is not known; give --compute-ms of a step on one rank", plan.network));
}

simulation_plan plan_of(given_options const& given, std::optional<bool> published = {}) {
    simulation_plan plan;
    plan.job.platform = platform_of(given);
    plan.ranks = parse_list(given.text("ranks"), "--ranks", 1, 4096);
    plan.network = given.text("network");
    auto const protocol = given.text("protocol");
    if (protocol != "published" && protocol != "fast")
        throw error(errc::usage, fmt::format("--protocol {}: give published or fast", protocol));
    plan.published = published.value_or(protocol == "published");
    plan.job.in_flight = static_cast<int>(given.integer("in-flight", 1, 1024));
    if (!plan.network.empty()) {
        set_network(plan, given);
        return plan;
    }
    if (plan.published) throw error(errc::usage, "--protocol published needs --network mnist or cifar10");
    for (auto const& each : split(given.text("gradient-bytes"), ','))
        plan.job.bytes.push_back(std::max<std::uint64_t>(4, parse_bytes(each, "--gradient-bytes") / 4 * 4));
    return plan;
}

void give_out(given_options const& given, nlohmann::json const& document, std::string const& table) {
    auto const json = given.text("json");
    if (json == "-")
        fmt::print("{}\n", document.dump(1));
    else
        fmt::print("{}", table);
    if (!json.empty() && json != "-") write_json_file(json, document);
}

void write_svg(std::string const& path, std::string const& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) throw_system("write", path, 0, "give another file with --plot");
}

/// The other protocol is simulated too.
void draw_plot(given_options const& given, simulated_study const& study, environment const& variables) {
    if (!study.plan.fit || study.plan.ranks.front() != 1)
        throw error(errc::usage, "--plot: give --network mnist or cifar10, and --ranks from 1 on");
    auto other = plan_of(given, !study.plan.published);
    auto const second = run_study(std::move(other), variables);
    auto const path = given.text("plot");
    write_svg(path, study.plan.published ? published_plot(study, second) : published_plot(second, study));
    fmt::print(stderr, "wrote {}\n", path);
}

}  // namespace

constexpr command_row simulate_row{
    .name = "simulate",
    .summary = "allreduces and training steps on a modelled machine",
    .synopsis = "--platform NAME [options]",
    .examples =
        "  muster-bench simulate --platform polaris --ranks 1,2,4,8,16,32 --network resnet50 --compute-ms 120\n"
        "  muster-bench simulate --platform dgx-a100 --network cifar10 --protocol published\n"
        "  muster-bench simulate --validate\n"
        "  muster-bench simulate --validate --measured scaling/results.json --collectives two.json\n",
    .options = simulate_options,
    .description =
        "muster's communicator runs on a model of the machine, by SimGrid. All that comes out is simulated, nothing is "
        "measured.\n",
};

int simulate_command(given_options const& given, environment const& variables) {
    if (given.has("validate") && (given.has("measured") || given.has("collectives"))) {
        auto const collectives = given.needed("collectives"), measured = given.needed("measured");
        auto const all = validate_here(
            read_local_measurements(read_json_file(collectives, "give the --json of muster-bench collectives-here"), collectives,
                                    read_json_file(measured, "give the results.json of muster-bench scale"), measured),
            variables);
        give_out(given, to_json(all), table_of(all));
        return 0;
    }
    if (given.has("validate")) {
        auto const rates = validate_platforms(given.text("platform"), variables);
        if (rates.empty())
            throw error(errc::usage, fmt::format("--validate: no bus bandwidth of {} is known here", given.text("platform")));
        give_out(given, to_json(rates), table_of(rates));
        return 0;
    }
    auto const plan = plan_of(given);
    auto const study = run_study(plan, variables);
    give_out(given, to_json(study), table_of(study));
    if (given.has("plot")) draw_plot(given, study, variables);
    return 0;
}

}  // namespace muster
