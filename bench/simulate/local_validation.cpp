#include "bench/simulate/local_validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text_table.hpp"
#include "base/units.hpp"
#include "bench/simulate/run_simulator.hpp"
#include "bench/tools/checked_json.hpp"
#include "bench/tools/gradient_sets.hpp"
#include "bench/tools/ranks_text.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

namespace {

double median_of(checked_json const& samples) {
    std::vector<double> values;
    for (auto const& each : samples.items()) values.push_back(each.value().is_number() ? each.number() : each.at("max").number());
    if (values.empty()) samples.fail("holds no sample");
    return median(values);
}

checked_json first_of(checked_json const& list) {
    auto const items = list.items();
    if (items.empty()) list.fail("is empty");
    return items.front();
}

void read_collectives(local_measurements& out, checked_json const& from) {
    if (from.at("schema").text() != "muster.collectives-here/1")
        from.at("schema").fail("is not muster.collectives-here/1: give the --json of muster-bench collectives-here");
    out.ranks = static_cast<int>(from.at("hosts").items().size());
    out.host = from.at("context").at("host").text();
    for (auto const& host : from.at("hosts").items())
        if (host.text() != from.at("hosts").items().front().text()) host.fail("is another host: give one of a single node");
    for (auto const& size : first_of(from.at("pairs")).at("sizes").items())
        out.messages.push_back({size.at("bytes").number(), median_of(size.at("latency_us"))});
    for (auto const& table : from.at("tables").items())
        if (table.at("collective").text() == "allreduce" && table.at("type").text() == "f32")
            for (auto const& size : table.at("sizes").items())
                out.allreduces.push_back({size.at("bytes").number(), median_of(size.at("in_place_us"))});
}

simulation_job job_on(local_validation const& all, int ranks) {
    simulation_job job;
    job.platform = all.platform;
    job.ranks = ranks;
    return job;
}

double constexpr tried_gbs = 10;

/// Additions take no time first, then that of one rate: an allreduce's time is a line in the time of a byte.
std::vector<explained_allreduce> explain_allreduces(local_validation& all, simulation_job const& job,
                                                    environment const& variables) {
    auto other = job;
    other.platform.memory_gbs = tried_gbs;
    auto const without = run_simulator(job, variables).allreduces, with = run_simulator(other, variables).allreduces;
    std::vector<explained_allreduce> out;
    for (std::size_t i = 0; i < without.size(); ++i)
        for (auto const& measured : all.from.allreduces)
            if (measured.bytes == static_cast<double>(without[i].bytes))
                out.push_back({measured.us, without[i].seconds * 1e6, (with[i].seconds - without[i].seconds) * 1e6 * tried_gbs});
    return out;
}

/// ns a byte, from all but one.
double additions_without(std::span<explained_allreduce const> all, std::size_t left_out) {
    double up = 0, down = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        auto const& each = all[i];
        if (i == left_out || !(each.measured_us > 0)) continue;
        double const w = 1 / (each.measured_us * each.measured_us);
        up += w * each.more_us * (each.measured_us - each.without_us);
        down += w * each.more_us * each.more_us;
    }
    return down > 0 ? std::max(0.0, up / down) : 0;
}

void predict_allreduces(local_validation& all, environment const& variables) {
    auto job = job_on(all, all.from.ranks);
    for (auto const& each : all.from.allreduces)
        if (each.bytes >= 4) job.bytes.push_back(static_cast<std::size_t>(each.bytes));
    if (job.bytes.empty()) return;
    auto const explained = explain_allreduces(all, job, variables);
    all.fitted = fit_additions(explained);
    all.platform.memory_gbs = all.fitted.gbs;
    for (std::size_t i = 0; i < explained.size(); ++i)
        all.predicted.push_back({"allreduce of " + format_bytes(job.bytes[i]), job.ranks, 0, explained[i].measured_us,
                                 explained[i].measured_us * (1 + all.fitted.left_out[i])});
}

double simulated_step_us(local_validation const& all, int ranks, double compute_s, double input_s, environment const& variables) {
    auto job = job_on(all, ranks);
    job.tensors = all.from.tensors;
    job.bucket_bytes = all.from.bucket_bytes;
    job.forward_s = compute_s / 3;
    job.backward_s = compute_s * 2 / 3;
    job.input_s = input_s;
    return run_simulator(job, variables).step_s * 1e6;
}

/// Twice: with compute and input of the fewest ranks, and with those of the very run, whose ranks slow each other down.
void predict_steps(local_validation& all, environment const& variables) {
    auto const& alone = all.from.steps.front();
    for (auto const& step : all.from.steps) {
        if (step.ranks == alone.ranks) continue;
        double const turns = std::max(1.0, static_cast<double>(step.ranks) / all.from.cores);
        all.predicted.push_back({"step, compute of " + ranks_text(alone.ranks), step.ranks, alone.ranks, step.step_s * 1e6,
                                 simulated_step_us(all, step.ranks, turns * alone.compute_s, turns * alone.input_s, variables)});
        all.predicted.push_back({"step, its own compute", step.ranks, step.ranks, step.step_s * 1e6,
                                 simulated_step_us(all, step.ranks, turns * step.compute_s, turns * step.input_s, variables)});
    }
}

}  // namespace

local_measurements read_local_measurements(nlohmann::json const& collectives, std::string const& collectives_origin,
                                           nlohmann::json const& study, std::string const& study_origin) {
    local_measurements out;
    read_collectives(out, checked_json(collectives, collectives_origin));
    out.steps = steps_of_study(study, study_origin);
    checked_json const from(study, study_origin);
    out.cores =
        static_cast<int>(from.at("context").at("cores").integer(1, 1'000'000));  // a rank knows those it is bound to alone
    for (auto const& run : from.at("runs").items()) {
        if (!run.has("train") || run.at("train").value().is_null()) continue;
        auto const train = run.at("train");
        out.bucket_bytes = static_cast<std::size_t>(train.at("bucket_bytes").integer(1, std::int64_t{1} << 40));
        auto const set = gradients_of(train.has("net") ? train.at("net").text() : "mnist");
        out.tensors.assign(set.elements.rbegin(), set.elements.rend());
        break;
    }
    return out;
}

addition_fit fit_additions(std::span<explained_allreduce const> all) {
    double const ns_a_byte = additions_without(all, all.size());
    addition_fit out;
    out.gbs = ns_a_byte > 0 ? 1 / ns_a_byte : 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        out.relative_rms += std::pow(all[i].us(ns_a_byte) / all[i].measured_us - 1, 2);
        out.left_out.push_back(all[i].us(additions_without(all, i)) / all[i].measured_us - 1);
    }
    if (!all.empty()) out.relative_rms = std::sqrt(out.relative_rms / static_cast<double>(all.size()));
    return out;
}

local_validation validate_here(local_measurements from, environment const& variables) {
    local_validation all;
    auto messages = from.messages;
    std::ranges::sort(messages, {}, &timed_size::bytes);
    std::erase_if(messages, [](auto const& each) { return !(each.bytes > 0 && each.us > 0); });
    if (messages.size() < 2)
        throw error(errc::invalid_data,
                    "there are fewer than two sizes of messages between two ranks; measure more with muster-bench "
                    "collectives-here --pair 0,1");
    double fastest = 0;
    for (auto const& each : messages) fastest = std::max(fastest, each.bytes / each.us / 1e3);
    all.platform = {.name = "measured",
                    .description = fmt::format("{}: messages between two ranks as they were measured", from.host),
                    .ranks_a_node = 1024,
                    .port_gbs = fastest,
                    .local_latency_us = messages.front().us,
                    .messages = std::move(messages),
                    .sources = {"measured between two ranks of this machine"}};
    all.from = std::move(from);
    predict_allreduces(all, variables);
    predict_steps(all, variables);
    return all;
}

std::string table_of(local_validation const& all) {
    auto text = fmt::format(
        "SIMULATED beside measured, on {} ({} cores)\n"
        "MEASURED: {} sizes of messages between two ranks, which are taken as they are\n"
        "FITTED, to the allreduces: additions at {:.2f} GB/s read and written (relative rms {:.0f}%)\n"
        "PREDICTED: each allreduce by what was fitted to those of other sizes ({:+.0f}% to {:+.0f}%); steps from these and the "
        "step of "
        "{}, nothing fitted to them\n"
        "of rows with \"its own compute\" compute and input are those of the very run that they are compared with (times the "
        "turns, "
        "where ranks share cores): only communication is predicted\n",
        all.from.host, all.from.cores, all.from.messages.size(), all.fitted.gbs, 100 * all.fitted.relative_rms,
        all.fitted.left_out.empty() ? 0 : 100 * *std::ranges::min_element(all.fitted.left_out),
        all.fitted.left_out.empty() ? 0 : 100 * *std::ranges::max_element(all.fitted.left_out),
        all.from.steps.empty() ? "no run" : ranks_text(all.from.steps.front().ranks));
    std::vector<std::vector<std::string>> rows{{"what", "ranks", "measured us", "simulated us", "error", "note"}};
    for (auto const& each : all.predicted)
        rows.push_back(
            {each.what, std::to_string(each.ranks), fmt::format("{:.1f}", each.measured_us),
             fmt::format("{:.1f}", each.simulated_us), fmt::format("{:+.0f}%", 100 * each.error()),
             each.ranks > all.from.cores ? fmt::format("{} ranks take turns on {} cores", each.ranks, all.from.cores) : ""});
    return text + align_columns(rows);
}

nlohmann::json to_json(local_validation const& all) {
    nlohmann::json out{{"schema", "muster.simulation-validation/3"},
                       {"simulated", true},
                       {"host", all.from.host},
                       {"cores", all.from.cores},
                       {"fitted",
                        {{"from", "allreduces, beyond the messages between two ranks"},
                         {"additions_gbs", all.fitted.gbs},
                         {"relative_rms", all.fitted.relative_rms},
                         {"leave_one_out_errors", all.fitted.left_out}}},
                       {"messages", to_json(all.platform).at("messages")},
                       {"predicted", nlohmann::json::array()}};
    for (auto const& each : all.predicted)
        out["predicted"].push_back(
            {{"what", each.what},
             {"ranks", each.ranks},
             {"compute_from", each.compute_from > 0 ? nlohmann::json(each.compute_from) : nlohmann::json()},
             {"simulated", true},
             {"measured_us", each.measured_us},
             {"simulated_us", each.simulated_us},
             {"error", each.error()}});
    return out;
}

}  // namespace muster
