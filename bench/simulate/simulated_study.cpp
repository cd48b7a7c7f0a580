#include "bench/simulate/simulated_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "bench/simulate/run_simulator.hpp"

namespace muster {

namespace {

double seconds_at_1(simulated_study const& study) {
    for (auto const& each : study.results)
        if (each.ranks == 1) return seconds_of_run(study, each);
    return 0;
}

/// What each point took beside compute does not depend on the fit: nothing is hidden behind the one fused buffer.
void fit_the_rest(simulation_plan& plan, environment const& variables) {
    auto const points = published_points(plan.network);
    auto const size = size_of_published(plan.network);
    auto as_run = plan;
    as_run.published = true;
    as_run.job.loss_each_step = true;
    as_run.job.bucket_bytes = std::accumulate(plan.job.tensors.begin(), plan.job.tensors.end(), std::size_t{0}) * sizeof(float);
    plan.known_s.clear();
    for (auto const& point : points) {
        auto const job = job_of(as_run, point.ranks);
        double const step = run_simulator(job, variables).step_s;
        plan.known_s.push_back(size.steps(point.ranks) * std::max(0.0, step - job.forward_s - job.backward_s));
    }
    plan.fit = fit_published(points, plan.known_s);
}

std::string table_of_allreduces(simulated_study const& study) {
    std::vector<std::vector<std::string>> rows{{"ranks", "size", "simulated us", "simulated busbw GB/s", "backend"}};
    for (auto const& result : study.results)
        for (auto const& each : result.allreduces) {
            auto const bytes = static_cast<double>(each.bytes) * study.plan.job.in_flight;
            rows.push_back({std::to_string(result.ranks), format_bytes(each.bytes), fmt::format("{:.1f}", each.seconds * 1e6),
                            fmt::format("{:.1f}", busbw_gbs(bytes, each.seconds, result.ranks)), result.backend});
        }
    return align_columns(rows);
}

std::string table_of_steps(simulated_study const& study) {
    bool const table = study.plan.fit.has_value();
    std::vector<std::vector<std::string>> rows{
        {"ranks", "simulated step ms", "exposed ms", "efficiency", "backend", "simulation took"}};
    if (table) rows[0].insert(rows[0].begin() + 1, {"simulated s", "speed-up", "of 8 ranks", "published s"});
    double const base = seconds_at_1(study);
    double step1 = 0, at_8 = 0;
    for (auto const& each : study.results) {
        if (each.ranks == 1) step1 = each.step_s;
        if (each.ranks == 8) at_8 = seconds_of_run(study, each);
    }
    if (step1 == 0) step1 = job_of(study.plan, 1).forward_s + study.plan.job.backward_s + study.plan.job.input_s;
    auto const points = table ? published_points(study.plan.network) : std::vector<table_point>{};
    for (auto const& each : study.results) {
        std::vector<std::string> row{std::to_string(each.ranks),
                                     fmt::format("{:.3f}", each.step_s * 1e3),
                                     fmt::format("{:.3f}", each.exposed_s * 1e3),
                                     study.plan.published ? "-" : fmt::format("{:.0f}%", 100 * step1 / each.step_s),
                                     each.backend,
                                     fmt::format("{}, {}", format_duration(duration{each.wall_s}),
                                                 format_bytes(static_cast<std::uint64_t>(each.memory_bytes)))};
        if (table) {
            double const seconds = seconds_of_run(study, each);
            std::string published = "-";
            for (auto const& point : points)
                if (point.ranks == each.ranks) published = fmt::format("{:.1f}", point.seconds);
            row.insert(row.begin() + 1, {fmt::format("{:.1f}", seconds), base > 0 ? fmt::format("{:.2f}", base / seconds) : "-",
                                         at_8 > 0 && each.ranks > 8 ? fmt::format("{:.2f}", seconds / at_8) : "-", published});
        }
        rows.push_back(row);
    }
    return align_columns(rows);
}

std::string words_on_fit(simulation_plan const& plan) {
    auto const points = published_points(plan.network);
    std::string errors;
    auto const left_out = leave_one_out(points, plan.known_s);
    for (std::size_t i = 0; i < points.size(); ++i)
        errors += fmt::format("{}{} {}", i == 0 ? "" : ", ", points[i].ranks,
                              left_out[i] ? fmt::format("{:+.0f}%", 100 * *left_out[i]) : "not determined");
    auto text = fmt::format(
        "FITTED to the six published points (relative rms {:.1f}%): {:.1f} s / N where a rank shares its core with its loader "
        "(N <= 2), {:.1f} s / N where not, constant {:.1f} s, {:.1f} s more above 8\n"
        "Leave one out: each point from the other five: {}\n",
        100 * relative_rms(*plan.fit, points, plan.known_s), plan.fit->slow_s, plan.fit->fast_s, plan.fit->constant_s,
        plan.fit->several_nodes_s, errors);
    std::string known;
    for (std::size_t i = 0; i < plan.known_s.size(); ++i)
        known += fmt::format("{}{} {:.1f} s", i == 0 ? "" : ", ", points[i].ranks, plan.known_s[i]);
    if (!known.empty())
        text += fmt::format(
            "KNOWN before the fit, which explains the rest: communication as simulated, and Horovod's loop of 1 ms, for which "
            "gradients and loss wait: {}\n",
            known);
    return text + (plan.published
                       ? "PREDICTED, nothing fitted: communication, by the simulation\n"
                       : "PREDICTED: communication, by the simulation, and the step without what binding and constants "
                         "cost: the faster fitted rate at every N, start-up apart\n");
}

}  // namespace

double busbw_gbs(double bytes, double seconds, int ranks) noexcept {
    return seconds > 0 ? bytes / seconds * 2 * (ranks - 1) / ranks / 1e9 : 0;
}

simulation_job job_of(simulation_plan const& plan, int ranks) {
    simulation_job job = plan.job;
    job.ranks = ranks;
    if (!plan.fit) return job;
    auto const size = size_of_published(plan.network);
    bool const shares_core = plan.published && ranks <= 2;
    double const step = (shares_core ? plan.fit->slow_s : plan.fit->fast_s) / size.steps(1);
    // Which part of it is input and which is compute is not in the table: a third forward, two thirds backward, as in compute.
    job.forward_s = step / 3;
    job.backward_s = step * 2 / 3;
    if (plan.published) job.fixed_s = published_wait_s(ranks);
    return job;
}

simulated_study run_study(simulation_plan plan, environment const& variables) {
    if (plan.fit) fit_the_rest(plan, variables);
    simulated_study study{std::move(plan), {}};
    for (int const ranks : study.plan.ranks) study.results.push_back(run_simulator(job_of(study.plan, ranks), variables));
    return study;
}

double seconds_of_run(simulated_study const& study, simulation_result const& at) {
    if (!study.plan.fit) return at.step_s;
    double const steps = size_of_published(study.plan.network).steps(at.ranks) * at.step_s;
    if (!study.plan.published) return steps;
    return steps + study.plan.fit->constant_s + (at.ranks > 8 ? study.plan.fit->several_nodes_s : 0);
}

std::string table_of(simulated_study const& study) {
    auto const& plan = study.plan;
    auto text = fmt::format("SIMULATED on {}: {}. Not a measurement.\n", plan.job.platform.name, plan.job.platform.description);
    if (!plan.job.bytes.empty()) text += table_of_allreduces(study);
    if (!plan.job.tensors.empty()) text += table_of_steps(study);
    if (plan.fit) text += words_on_fit(plan);
    return text;
}

nlohmann::json to_json(simulated_study const& study) {
    auto const& plan = study.plan;
    nlohmann::json out{{"schema", "muster.simulation/1"},
                       {"simulated", true},
                       {"network", plan.network},
                       {"protocol", plan.published ? "published" : "fast"},
                       {"platform", to_json(plan.job.platform)},
                       {"simulator", "SimGrid SMPI, network model CM02"},
                       {"results", nlohmann::json::array()}};
    for (auto const& each : study.results) {
        auto one = to_json(each);
        one["job"] = to_json(job_of(plan, each.ranks));
        one["job"].erase("platform");
        if (plan.fit) one["predicted"] = {{"seconds_of_run", seconds_of_run(study, each)}};
        for (auto& of : one["allreduces"])
            of["busbw_gbs"] = busbw_gbs(of["bytes"].get<double>() * plan.job.in_flight, of["seconds"].get<double>(), each.ranks);
        out["results"].push_back(std::move(one));
    }
    if (!plan.fit) return out;
    auto const points = published_points(plan.network);
    auto const left_out = leave_one_out(points, plan.known_s);
    auto errors = nlohmann::json::array();
    for (std::size_t i = 0; i < points.size(); ++i)
        errors.push_back({{"ranks", points[i].ranks},
                          {"published_s", points[i].seconds},
                          {"known_s", i < plan.known_s.size() ? plan.known_s[i] : 0},
                          {"leave_one_out_error", left_out[i] ? nlohmann::json(*left_out[i]) : nlohmann::json()}});
    out["fitted"] = {{"slow_s", plan.fit->slow_s},
                     {"fast_s", plan.fit->fast_s},
                     {"constant_s", plan.fit->constant_s},
                     {"several_nodes_s", plan.fit->several_nodes_s},
                     {"relative_rms", relative_rms(*plan.fit, points, plan.known_s)},
                     {"points", errors}};
    return out;
}

}  // namespace muster
