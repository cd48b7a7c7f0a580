#include "bench/simulate/predict_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text_table.hpp"
#include "base/units.hpp"
#include "bench/simulate/measured_step.hpp"
#include "bench/simulate/run_simulator.hpp"
#include "bench/simulate/validation.hpp"
#include "bench/tools/checked_json.hpp"
#include "bench/tools/gradient_sets.hpp"
#include "bench/tools/options.hpp"

namespace muster {

namespace {

constexpr option_row predict_options[]{
    {"platform", 0, "NAME", "dgx-a100, dgx-h100, polaris or perlmutter", ""},
    {"gpus", 0, "N", "ranks to ask for", ""},
    {"network", 0, "NAME", "whose gradients: mnist, cifar10, resnet50 or gpt2-small", "mnist"},
    {"gradient-bytes", 0, "SIZE", "instead of --network: gradients of so many bytes in f32, taken to be 16 tensors", ""},
    {"steps", 0, "N", "of a program of your own: the steps of a run at the fewest ranks of the study", ""},
    {"compute-ms", 0, "MS", "of a step on one rank of that machine, instead of the measured one", ""},
    {"bucket-bytes", 0, "SIZE", "of the gradient reducer", "1MiB"},
    {"json", 0, "FILE|-", "the prediction (schema muster.prediction/1)", ""},
};

/// Simulated as the platform is described, and with all its links faster and slower by what the validation was off.
struct prediction {
    measured_step measured;
    simulation_job job;
    error_range range;
    simulation_result expected, best, worst;
    double alone() const { return job.forward_s + job.backward_s + job.input_s; }
    double efficiency(simulation_result const& of) const { return alone() / of.step_s; }
    std::string_view limit() const {
        double const compute = job.forward_s + job.backward_s;
        if (expected.exposed_s > std::max(compute, job.input_s)) return "communication";
        return job.input_s > compute ? "the loader" : "compute";
    }
};

simulation_result simulate_slowed(simulation_job job, double factor, environment const& variables) {
    auto& on = job.platform;
    for (double* rate : {&on.port_gbs, &on.pair_gbs, &on.pcie_gbs, &on.card_gbs}) *rate /= factor;
    for (double* latency : {&on.local_latency_us, &on.network_latency_us}) *latency *= factor;
    return run_simulator(job, variables);
}

void set_gradients(simulation_job& job, given_options const& given) {
    if (!given.has("gradient-bytes")) {
        auto const set = gradients_of(given.text("network"));
        job.tensors.assign(set.elements.rbegin(), set.elements.rend());
        return;
    }
    constexpr std::size_t tensors = 16;
    auto const elements = parse_bytes(given.text("gradient-bytes"), "--gradient-bytes") / sizeof(float);
    job.tensors.assign(tensors, std::max<std::size_t>(1, elements / tensors));
}

prediction predict(given_options const& given, environment const& variables) {
    if (given.words().size() != 1) throw error(errc::usage, "predict: give one RESULTS.json of muster-bench scale");
    auto const& file = given.words().front();
    prediction p;
    auto const document = read_json_file(file, "give the results.json of muster-bench scale");
    p.measured = given.has("steps") ? step_of_program(document, file, count_of(given, "steps")) : step_of_study(document, file);
    p.job.platform = platform_named(given.needed("platform"));
    p.job.ranks = static_cast<int>(given.integer("gpus", 1, 4096));
    set_gradients(p.job, given);
    p.job.bucket_bytes = parse_bytes(given.text("bucket-bytes"), "--bucket-bytes");
    double const compute = given.has("compute-ms") ? given.real("compute-ms") * 1e-3 : p.measured.compute_s;
    if (!(compute > 0)) throw error(errc::usage, "--compute-ms: expected more than 0");
    p.job.forward_s = compute / 3;
    p.job.backward_s = compute * 2 / 3;
    p.job.input_s = p.measured.input_s;
    p.expected = run_simulator(p.job, variables);
    p.best = simulate_slowed(p.job, p.range.least, variables);
    p.worst = simulate_slowed(p.job, p.range.most, variables);
    return p;
}

std::string table_of(prediction const& p, bool given_compute) {
    auto const ms = [](double seconds) { return fmt::format("{:.3f}", seconds * 1e3); };
    std::vector<std::vector<std::string>> rows{{"SIMULATED", "step ms", "exposed communication ms", "efficiency %"}};
    auto const add = [&](std::string name, simulation_result const& of) {
        rows.push_back({std::move(name), ms(of.step_s), ms(of.exposed_s), fmt::format("{:.0f}", 100 * p.efficiency(of))});
    };
    add("expected", p.expected);
    add("at best", p.best);
    add("at worst", p.worst);
    return fmt::format(
        "SIMULATED on {} ranks of {}, from {} rank(s) measured: {} ms compute{}, {} ms input a step. Not a measurement.\n{}"
        "Range: all links {:.2f} to {:.2f} times as slow, as far as the simulation is off published bus bandwidths.\n"
        "What limits it: {}.{}\n",
        p.job.ranks, p.job.platform.description, p.measured.ranks, ms(p.job.forward_s + p.job.backward_s),
        given_compute ? " (given, not measured)" : "", ms(p.job.input_s), align_columns(rows), p.range.least, p.range.most,
        p.limit(),
        given_compute
            ? ""
            : " Compute is that of the measured machine: where the other's processors or GPUs differ, give --compute-ms.");
}

nlohmann::json to_json(prediction const& p) {
    auto const at = [&](simulation_result const& of) {
        return nlohmann::json{
            {"simulated", true}, {"step_s", of.step_s}, {"exposed_s", of.exposed_s}, {"efficiency", p.efficiency(of)}};
    };
    return {{"schema", "muster.prediction/1"},
            {"simulated", true},
            {"ranks", p.job.ranks},
            {"platform", to_json(p.job.platform)},
            {"measured",
             {{"ranks", p.measured.ranks},
              {"step_s", p.measured.step_s},
              {"compute_s", p.measured.compute_s},
              {"input_s", p.measured.input_s}}},
            {"compute_s", p.job.forward_s + p.job.backward_s},
            {"predicted", at(p.expected)},
            {"predicted_best", at(p.best)},
            {"predicted_worst", at(p.worst)},
            {"limit", p.limit()}};
}

}  // namespace

constexpr command_row predict_row{
    .name = "predict",
    .summary = "what to expect of a measured program on more ranks of a modelled machine",
    .synopsis = "RESULTS.json --platform NAME --gpus N [options]",
    .examples =
        "  muster-bench predict out/results.json --platform perlmutter --gpus 64\n"
        "  muster-bench predict study/results.json --steps 500 --gradient-bytes 100MiB --platform polaris --gpus 32\n",
    .options = predict_options,
    .description = "Takes compute and input of a step from the study's smallest number of ranks, and simulates communication.\n",
    .most_words = 1,
};

int predict_command(given_options const& given, environment const& variables) {
    auto const p = predict(given, variables);
    auto const json = given.text("json");
    if (json == "-")
        fmt::print("{}\n", to_json(p).dump(1));
    else
        fmt::print("{}", table_of(p, given.has("compute-ms")));
    if (!json.empty() && json != "-") write_json_file(json, to_json(p));
    return 0;
}

}  // namespace muster
