#include "bench/tools/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/process/run_captured.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/text_table.hpp"
#include "base/units.hpp"
#include "bench/predict/measured_step.hpp"
#include "bench/predict/simulation.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/scaling_table.hpp"
#include "bench/tools/checked_json.hpp"
#include "bench/tools/gradient_sets.hpp"
#include "bench/tools/options.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr option_row predict_options[]{
    {"platform", 0, "NAME", "dgx-a100, dgx-h100, polaris or perlmutter", "", false, "dgx-a100 dgx-h100 polaris perlmutter"},
    {"latency-us", 0, "US", "instead of a platform: one rank a node, links of this latency", ""},
    {"link-gbs", 0, "GB/s", "and of this rate", "10"},
    {"ranks", 'n', "LIST", "numbers of ranks to predict", "2,4,8,16,32"},
    {"net", 0, "NAME", "whose gradients: mnist, cifar10, resnet50 or gpt2-small; default: the study's", "", false,
     "mnist cifar10 resnet50 gpt2-small"},
    {"gradient-bytes", 0, "SIZE", "instead: gradients of so many bytes in f32, taken to be 16 tensors", ""},
    {"steps", 0, "N", "of a program that does not print the metric 'steps': how many the measured time has", ""},
    {"compute-ms", 0, "MS",
     "of a step on one rank of that machine, instead of the measured one; with the batch of all ranks in a strong series", ""},
    {"strong", 0, "", "of a program that divides its work itself: a step has the same work on all numbers of ranks", ""},
    {"weak", 0, "", "of such a program: a step has the same work for each rank", ""},
    {"bucket-bytes", 0, "SIZE", "of the gradients' buckets; muster.torch: the first of 1 MiB, the others of 8 MiB", "8MiB"},
    {"validate", 0, "", "instead of a study: compare the platforms' simulated allreduces with published bus bandwidths", ""},
    {"json", 0, "FILE|-", "the prediction (schema muster.prediction/2)", ""},
};

/// By what communication's simulated time is to be multiplied, at least and at most, to meet every published rate: what --validate
/// found when this was written (docs/prediction.md).
constexpr double least_slower = 0.76, most_slower = 1.78;  // DGX A100 and Polaris, 2 nodes each

/// One number of ranks: as the platform is described, and at best and worst by what is known of the error.
struct predicted_row {
    int ranks = 1;
    simulation_result expected, best, worst;
};

/// Compute and input are those of one rank alone: with the batch of a rank, or in a strong series with that of all.
struct prediction {
    measured_steps measured;
    double best_compute_s = 0, compute_s = 0, worst_compute_s = 0, input_s = 0;
    bool given_compute = false, input_told = false;
    bool has_spread = true;  ///< compute at best and worst is that of several runs, on a quiet machine
    work_series series = work_series::weak;
    std::string series_from;         ///< why it is this one, where the study has no series: ", as …"
    std::string rate;                ///< by which the study is judged; "" where that is a time
    double work = 0;                 ///< of a step on one rank, in what that rate counts; 0: not known
    std::vector<std::string> notes;  ///< of the study and its rows
    simulation_job job;
    std::vector<predicted_row> rows;
    double alone_s() const noexcept { return compute_s + input_s; }
    bool strong() const noexcept { return series == work_series::strong; }
    double part_of(int ranks) const noexcept { return strong() ? 1.0 / ranks : 1; }
};

/// Beside this program in a build tree, in libexec/muster where it is installed.
std::string simulator() {
    auto const here = self_program().parent_path();
    for (auto const& path : {here / "muster-simulate", here / "../libexec/muster/muster-simulate"})
        if (fs::exists(path)) return path.string();
    throw error(
        errc::unavailable,
        fmt::format("the simulator is not there ({}): it is built where SimGrid is; install libsimgrid-dev (3.32 or later) "
                    "and build muster again",
                    (here / "muster-simulate").string()));
}

/// With all links so many times as slow.
simulation_result simulate(simulation_job job, double slower, double compute_s, environment const& variables) {
    auto& on = job.platform;
    for (double* rate : {&on.port_gbs, &on.pair_gbs, &on.pcie_gbs, &on.card_gbs}) *rate /= slower;
    for (double* latency : {&on.local_latency_us, &on.network_latency_us}) *latency *= slower;
    job.forward_s = compute_s / 3;
    job.backward_s = compute_s * 2 / 3;
    auto const program = simulator(), input = to_json(job).dump();
    auto how = foreground();
    how.input = input;
    auto const output = run_program({program}, variables, how);
    if (output.exit_status != 0)
        throw error(errc::peer_failed, fmt::format("{} ended with exit code {} at {} ranks on {}; its messages are above",
                                                   program, output.exit_status, job.ranks, on.name));
    return read_result(parse_json(output.out, "what the simulator printed"));
}

platform_model platform_of(given_options const& given) {
    if (given.has("platform") == given.has("latency-us"))
        throw error(errc::usage, "predict: give --platform NAME, or --latency-us and --link-gbs");
    if (given.has("platform") && given.has("link-gbs"))
        throw error(errc::usage, "predict: --link-gbs is of --latency-us; leave it or --platform out");
    if (given.has("platform")) return platform_named(given.text("platform"));
    double const latency = given.real("latency-us"), gbs = given.real("link-gbs");
    if (!(gbs > 0 && latency >= 0)) throw error(errc::usage, "predict: --latency-us is to be 0 or more, --link-gbs more than 0");
    return plain_link(latency, gbs);
}

/// Gradients become ready from the last layer to the first.
std::vector<std::size_t> tensors_of(given_options const& given, study const& results) {
    constexpr std::size_t tensors = 16;
    if (given.has("gradient-bytes")) {
        auto const elements = parse_bytes(given.text("gradient-bytes"), "--gradient-bytes") / sizeof(float);
        return std::vector<std::size_t>(tensors, std::max<std::size_t>(1, elements / tensors));
    }
    auto const name = given.has("net") ? given.text("net") : results.plan.net;
    if (name.empty())
        throw error(errc::usage, "predict: the gradients of the study's program are not known; give --gradient-bytes, or --net");
    auto const set = gradients_of(name);
    return {set.elements.rbegin(), set.elements.rend()};
}

std::string ms(double seconds) {
    return fmt::format("{:.3f}", seconds * 1e3);
}

/// Of a study without a series the program itself divided the work: its steps tell how.
void set_series(prediction& p, given_options const& given, study const& results, std::string const& origin) {
    bool const strong = given.has("strong"), weak = given.has("weak");
    auto const asked = strong ? work_series::strong : work_series::weak;
    if (strong && weak) throw error(errc::usage, "predict: --strong and --weak exclude each other; give one");
    p.series = results.plan.series;
    if (p.series != work_series::as_given) {
        if ((strong || weak) && asked != p.series)
            throw error(errc::usage, fmt::format("predict: --{}: {} was made with --{}; leave it out", to_string(asked), origin,
                                                 to_string(p.series)));
        return;
    }
    p.series = strong ? work_series::strong : work_series::weak;
    if (strong || weak || results.plan.has_net()) return;  // a net's batch is that of a rank
    std::vector<measured_step> rows;
    for (auto const& each : p.measured.rows)
        if (!each.oversubscribed && each.compute_s > 0) rows.push_back(each);
    if (rows.size() < 2) {
        p.series_from =
            ": assumed, as the study has neither --strong nor --weak, and no second number of ranks to tell; give "
            "--strong if the program divides the work of a step over its ranks";
        return;
    }
    auto const &first = rows.front(), &last = rows.back();
    auto const seen = fmt::format("a step computes {} ms on {} and {} ms on {}", ms(first.compute_s), ranks_text(first.ranks),
                                  ms(last.compute_s), ranks_text(last.ranks));
    bool const divided = last.compute_s / first.compute_s < std::sqrt(static_cast<double>(first.ranks) / last.ranks);
    if (divided && p.measured.given_steps)
        throw error(
            errc::usage,
            fmt::format("predict: {}: with --steps on every number of ranks {}; if the program divides the work of a step "
                        "over its ranks, give --strong; if each rank makes fewer steps, have it print the metric 'steps', "
                        "and leave --steps out",
                        origin, seen));
    constexpr double still_equal = 0.9;  // of one batch a rank, as measured
    if (!divided && last.compute_s < still_equal * first.compute_s)
        throw error(
            errc::usage,
            fmt::format(
                "predict: {}: {}, which is neither one batch a rank nor the work of a step divided; give --strong if the program "
                "divides a step's work over its ranks, or --weak",
                origin, seen));
    p.series = divided ? work_series::strong : work_series::weak;
    p.series_from = fmt::format(", as {}; --{} takes the other way", seen, divided ? "weak" : "strong");
}

/// The study's own rate is predicted too, by the work of a step on its first row.
void set_work(prediction& p, study const& results) {
    if (!results.plan.judged.rate) return;
    p.rate = results.plan.judged.name;
    for (auto const& row : scaling_rows(results))
        for (auto const& step : p.measured.rows)
            if (p.work == 0 && step.ranks == row.ranks && !row.oversubscribed)
                p.work = row.median_of(p.rate) * step.step_s / (p.strong() ? 1 : row.ranks);
}

/// What the ranks of one machine cost each other is not what those of the other machine will: the range has both.
void set_compute(prediction& p, given_options const& given) {
    p.given_compute = given.has("compute-ms");
    if (p.given_compute) p.compute_s = p.best_compute_s = p.worst_compute_s = given.real("compute-ms") * 1e-3;
    bool first = true;
    for (auto const& each : p.measured.rows) {
        if (each.oversubscribed) continue;
        if (first) p.input_s = each.input_s / p.part_of(each.ranks), p.input_told = each.input_told;
        double const compute = each.compute_s / p.part_of(each.ranks);
        if (!p.given_compute && compute > 0) {
            if (first) p.compute_s = p.best_compute_s = p.worst_compute_s = compute;
            p.best_compute_s = std::min(p.best_compute_s, each.least_compute_s / p.part_of(each.ranks));
            p.worst_compute_s = std::max(p.worst_compute_s, each.most_compute_s / p.part_of(each.ranks));
        }
        first = false;
    }
    if (first && !p.given_compute)
        throw error(errc::usage,
                    "predict: in all rows of the study ranks share cores; measure fewer ranks, or give --compute-ms");
    if (!(p.compute_s > 0)) throw error(errc::usage, "predict: a step's compute is 0; give --compute-ms");
}

bool is_busy(study const& results) {
    return results.load.crowded_before() ||
           std::ranges::any_of(results.runs, [](auto const& run) { return run.counts() && run.load.crowded(); });
}

/// All that makes the study's own figures less than certain.
std::vector<std::string> notes_of(study const& results, std::vector<int> const& ranks) {
    std::vector<std::string> out;
    auto const rows = scaling_rows(results);
    for (auto const& row : rows)
        if (auto const note = scaling_note(row); !note.empty()) out.push_back(fmt::format("{}: {}", ranks_text(row.ranks), note));
    for (auto& each : reservations_of(results, rows)) out.push_back(std::move(each));
    if (results.plan.series == work_series::strong && results.plan.batch)
        for (int const n : ranks)
            if (n > *results.plan.batch)
                out.push_back(
                    fmt::format("note: {} have no whole sample each of the batch of {}", ranks_text(n), *results.plan.batch));
    return out;
}

/// Those of `rows` for which it holds, "1 rank, 2 ranks"; "" for none.
template <class Predicate>
std::string rows_where(std::vector<measured_step> const& rows, Predicate holds) {
    std::vector<std::string> out;
    for (auto const& each : rows)
        if (!each.oversubscribed && holds(each)) out.push_back(ranks_text(each.ranks));
    return join(out, ", ");
}

/// What counts as compute and is none. One rank waits for no gradients.
void add_notes_on_waiting(prediction& p) {
    auto const& rows = p.measured.rows;
    auto const without_input = rows_where(rows, [](auto const& each) { return !each.input_told; });
    auto const without_waiting = rows_where(rows, [](auto const& each) { return !each.exposed_told && each.ranks > 1; });
    auto const fewest = std::ranges::find(rows, false, &measured_step::oversubscribed);
    if (!without_input.empty())
        p.notes.push_back(fmt::format("note: the program does not print loader_wait_s: waiting for input {} ({})",
                                      p.given_compute ? "is taken for none" : "counts as compute", without_input));
    if (p.given_compute || without_waiting.empty()) return;
    bool const in_base = fewest->ranks > 1 && !fewest->exposed_told;
    p.notes.push_back(
        fmt::format("note: the program does not print allreduce_wait_s: waiting for gradients counts as compute ({}){}",
                    without_waiting, in_base ? "; the prediction has it twice: print it, or measure 1 rank too" : ""));
}

/// What the known error does not hold.
void add_notes_on_spread(prediction& p, bool busy) {
    if (p.given_compute) return;
    auto const single = rows_where(p.measured.rows, [](auto const& each) { return each.runs < 2; });
    p.has_spread = single.empty() && !busy;
    if (!single.empty())
        p.notes.push_back(
            fmt::format("note: the known error holds no spread between runs ({}: one run); give more --repeats", single));
    if (busy)
        p.notes.push_back(
            "note: the known error holds no spread of a quiet machine: other programs worked during the study, and their "
            "part is not known");
}

prediction predict(given_options const& given, environment const& variables) {
    if (given.words().size() != 1)
        throw error(errc::usage, "predict: give one RESULTS.json of muster-bench scale, or its folder");
    auto const& file = given.words().front();
    auto const results = read_study_file(file);
    auto const numbers = parse_list(given.text("ranks"), "--ranks", 1, 4096);
    prediction p;
    std::optional<double> steps;
    if (given.has("steps")) steps = count_of(given, "steps");
    p.measured = steps_of_study(results, steps, file, !given.has("compute-ms"));
    set_series(p, given, results, file);
    set_work(p, results);
    p.notes = notes_of(results, numbers);
    set_compute(p, given);
    add_notes_on_waiting(p);
    add_notes_on_spread(p, is_busy(results));
    if (steps && !p.measured.over_steps)
        p.notes.push_back(fmt::format(
            "note: --steps {:g} is not used: {}", *steps,
            p.measured.rows.empty() ? "the study has no time of steps" : fmt::format("a step is {}", p.measured.from)));
    p.job.platform = platform_of(given);
    p.job.tensors = tensors_of(given, results);
    p.job.bucket_bytes = parse_bytes(given.text("bucket-bytes"), "--bucket-bytes");
    for (int const ranks : numbers) {
        double const part = p.part_of(ranks);
        p.job.ranks = ranks;
        p.job.input_s = p.input_s * part;
        p.rows.push_back({ranks, simulate(p.job, 1, p.compute_s * part, variables),
                          simulate(p.job, least_slower, p.best_compute_s * part, variables),
                          simulate(p.job, most_slower, p.worst_compute_s * part, variables)});
    }
    return p;
}

std::string known_error(prediction const& p, double best, double worst, double expected) {
    double const least = 100 * (best / expected - 1), most = 100 * (worst / expected - 1);
    if (std::max(std::abs(least), std::abs(most)) < 0.5) return p.has_spread ? "under 1%" : "no spread";
    return fmt::format("{:+.0f}% to {:+.0f}%", least, most);
}

std::string_view limit_of(prediction const& p, predicted_row const& row) {
    if (row.expected.exposed_s > std::max(p.compute_s, p.input_s) * p.part_of(row.ranks)) return "communication";
    return p.input_s > p.compute_s ? "the loader" : "compute";
}

/// The work of N ranks in a second over that of one.
double speedup(prediction const& p, predicted_row const& row, simulation_result const& of) {
    return row.ranks * p.part_of(row.ranks) * p.alone_s() / of.step_s;
}

/// The study's rate on these ranks.
double rate_of(prediction const& p, predicted_row const& row) {
    return p.work * (p.strong() ? 1 : row.ranks) / row.expected.step_s;
}

/// What the ranks' work is taken to be.
std::string model_text(prediction const& p) {
    auto const alone = p.input_told ? fmt::format("computes {} ms and waits {} ms for input", ms(p.compute_s), ms(p.input_s))
                                    : fmt::format("computes {} ms (its waiting for input is not told)", ms(p.compute_s));
    if (p.strong())
        return fmt::format(
            "strong scaling: a fixed batch over all ranks{}. Each of N ranks has an Nth of a step of one rank, which {}; "
            "the speed-up is against that rank",
            p.series_from, alone);
    return fmt::format(
        "weak scaling: a fixed batch per rank{}. The speed-up is of the work done in a second, against one rank that {}",
        p.series_from, alone);
}

std::string measured_text(prediction const& p) {
    std::string out =
        p.measured.rows.empty() ? "measured: no time of a step\n" : fmt::format("measured: a step is {}\n", p.measured.from);
    for (auto const& each : p.measured.rows)
        out += fmt::format("  {}: {} ms a step: compute {}, input {}, waiting for gradients {}{}\n", ranks_text(each.ranks),
                           ms(each.step_s), ms(each.compute_s), each.input_told ? ms(each.input_s) : "not told",
                           each.exposed_told ? ms(each.exposed_s) : "not told",
                           each.oversubscribed ? " (oversubscribed, not used)" : "");
    return out;
}

std::string table_of(prediction const& p) {
    std::vector<std::vector<std::string>> rows{
        {"ranks", "step ms", "known error", "speed-up", "known error", "efficiency", "waiting ms", "limit"}};
    if (p.work > 0) rows.front().insert(rows.front().begin() + 1, p.rate);
    for (auto const& row : p.rows) {
        double const s = speedup(p, row, row.expected);
        rows.push_back({std::to_string(row.ranks), ms(row.expected.step_s),
                        known_error(p, row.best.step_s, row.worst.step_s, row.expected.step_s), fmt::format("{:.2f}", s),
                        known_error(p, speedup(p, row, row.worst), speedup(p, row, row.best), s),
                        fmt::format("{:.0f}%", 100 * s / row.ranks), ms(row.expected.exposed_s), std::string(limit_of(p, row))});
        if (p.work > 0) rows.back().insert(rows.back().begin() + 1, format_value(rate_of(p, row)));
    }
    auto out = fmt::format("SIMULATED on {}. Not a measurement.\n{}", p.job.platform.description, align_columns(rows));
    out += paragraph(model_text(p));
    out +=
        paragraph(fmt::format("known error: links {:.2f} to {:.2f} times as slow, as far as simulated allreduces are off "
                              "published bus bandwidths; compute "
                              "{} to {} ms{}",
                              least_slower, most_slower, ms(p.best_compute_s), ms(p.worst_compute_s),
                              p.given_compute ? " (given)" : ", as it was measured"));
    out += measured_text(p);
    for (auto const& note : p.notes) out += paragraph(note);
    if (!p.given_compute)
        out +=
            paragraph("compute is that of the measured machine; where the other's processors or GPUs differ, give --compute-ms");
    return out;
}

nlohmann::json to_json(prediction const& p) {
    nlohmann::json out{{"schema", "muster.prediction/2"},
                       {"simulated", true},
                       {"platform", to_json(p.job.platform)},
                       {"compute_s", p.compute_s},
                       {"input_s", p.input_s},
                       {"measured", nlohmann::json::array()},
                       {"rows", nlohmann::json::array()},
                       {"series", to_string(p.series)},
                       {"series_from", p.series_from},
                       {"step_from", p.measured.from},
                       {"notes", p.notes}};
    for (auto const& each : p.measured.rows)
        out["measured"].push_back({{"ranks", each.ranks},
                                   {"runs", each.runs},
                                   {"step_s", each.step_s},
                                   {"compute_s", each.compute_s},
                                   {"least_compute_s", each.least_compute_s},
                                   {"most_compute_s", each.most_compute_s}});
    for (auto const& row : p.rows)
        out["rows"].push_back({{"ranks", row.ranks},
                               {"simulated", true},
                               {"step_s", row.expected.step_s},
                               {"best_step_s", row.best.step_s},
                               {"worst_step_s", row.worst.step_s},
                               {"exposed_s", row.expected.exposed_s},
                               {"backend", row.expected.backend},
                               {"speedup", speedup(p, row, row.expected)},
                               {"limit", limit_of(p, row)}});
    if (p.work > 0)
        for (std::size_t i = 0; i < p.rows.size(); ++i)
            out["rows"][i]["rate"] = {{"name", p.rate}, {"value", rate_of(p, p.rows[i])}};
    return out;
}

/// One allreduce of 256 MiB at each published rate of this platform ("": of all).
std::string validation_of(std::string const& platform, environment const& variables) {
    constexpr std::size_t large_bytes = std::size_t{256} << 20;
    std::vector<std::vector<std::string>> rows{
        {"platform", "ranks", "simulated GB/s", "published GB/s", "error", "published where"}};
    for (auto const& each : published_rates()) {
        if (!platform.empty() && each.platform != platform) continue;
        simulation_job job;
        job.platform = platform_named(each.platform);
        job.ranks = each.ranks;
        job.tensors = {large_bytes / sizeof(float)};
        double const seconds = simulate(job, 1, 0, variables).step_s;  // nothing but one bucket
        double const gbs = static_cast<double>(large_bytes) / seconds * 2 * (each.ranks - 1) / each.ranks / 1e9;
        rows.push_back({each.platform, std::to_string(each.ranks), fmt::format("{:.1f}", gbs),
                        fmt::format("{:.0f}", each.busbw_gbs), fmt::format("{:+.0f}%", 100 * (gbs / each.busbw_gbs - 1)),
                        each.source});
    }
    return "SIMULATED bus bandwidth of one allreduce of 256 MiB by muster's mpi and hierarchical backends; the published ones "
           "are "
           "NCCL's.\n" +
           align_columns(rows);
}

}  // namespace

constexpr command_row predict_row{
    .name = "predict",
    .summary = "what to expect of a measured program on more ranks of a modelled machine",
    .synopsis = "RESULTS.json --platform NAME [options]",
    .examples =
        "  muster-bench predict scaling --platform perlmutter --ranks 4,8,16,32\n"
        "  muster-bench predict study/results.json --steps 500 --gradient-bytes 100MiB --platform polaris --ranks 32\n",
    .options = predict_options,
    .description =
        "Takes compute and input of a step from the study's smallest number of ranks, and simulates communication: strong or "
        "weak\n"
        "scaling as the study was made, else as its steps tell. Nothing that it prints is a measurement.",
    .most_words = 1,
};

int predict_command(given_options const& given, environment const& variables) {
    if (given.has("validate")) {
        fmt::print("{}", validation_of(given.has("platform") ? platform_named(given.text("platform")).name : "", variables));
        return 0;
    }
    auto const p = predict(given, variables);
    auto const json = given.text("json");
    if (json == "-")
        fmt::print("{}\n", to_json(p).dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
    else
        fmt::print("{}", table_of(p));
    if (!json.empty() && json != "-") write_json_file(json, to_json(p));
    return 0;
}

}  // namespace muster
