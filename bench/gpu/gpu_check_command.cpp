#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "base/process/this_process.hpp"
#include "base/throw_error.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/version.hpp"
#include "bench/gpu/gpu_check.hpp"
#include "bench/study/program_software.hpp"
#include "bench/tools/checked_json.hpp"
#include "bench/tools/commands.hpp"
#include "bench/tools/machine.hpp"
#include "bench/tools/options.hpp"
#include "bench/tools/temporary_folder.hpp"
#include "bench/tools/watched_run.hpp"
#include "comm/cuda/driver.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

constexpr option_row gpu_check_options[]{
    {"ranks", 'n', "N", "ranks on this node; default: one for each GPU, up to 8, and two on one GPU", ""},
    {"python", 0, "PROGRAM", "the Python of your training, with torch", "python3"},
    {"output", 'o', "FILE", "what passed, as JSON", "gpu-check.json"},
    {"muster", 0, "PATH", "the launcher; default: muster in this program's folder", ""},
};
constexpr duration whole_limit{600}, step_limit{150};
constexpr std::size_t most_kept_bytes = 8000;  // of the output of a step that did not pass

/// A part of muster that needs a GPU, and the command that tries it.
struct gpu_step {
    std::string name, what;
    std::vector<std::string> command;
    bool with_torch = false;
    bool (*shows)(std::string const& output) = nullptr;  ///< whether the output is right, if the exit code does not say so
};

struct step_result {
    std::string outcome;  ///< "passed", "failed" or "not run"
    std::string why;      ///< the last line of output, or what ended the step, if it did not pass
    std::string output;
    duration wall{0};
};

/// The programs that are started, and on how many ranks.
struct gpu_check {
    std::string self, muster, python, script;
    int ranks = 1;
    int per_gpu = 1;  ///< ranks that share a GPU

    std::vector<std::string> on_ranks(std::vector<std::string> const& program) const {
        std::vector<std::string> command{muster, "run", "-q", "-n", std::to_string(ranks)};
        if (per_gpu > 1)
            command.insert(command.end(),
                           {"--slots-per-node", std::to_string(ranks), "--ranks-per-gpu", std::to_string(per_gpu)});
        command.insert(command.end(), {"--timeout", fmt::format("{}s", step_limit.count() - 20), "--"});
        // NCCL takes two ranks on one GPU for a mistake, unless they seem to be on two hosts.
        if (per_gpu > 1) command.insert(command.end(), {"sh", "-c", "NCCL_HOSTID=muster-$RANK exec \"$@\"", "sh"});
        command.insert(command.end(), program.begin(), program.end());
        return command;
    }
    std::vector<std::string> own(std::string const& step) const { return {self, "gpu-check-step", step}; }
    std::vector<std::string> torch(std::string const& step) const { return on_ranks({python, script, step}); }
};

bool lists_gpus(std::string const& report) {
    return report.find(" GPU-") != report.npos || report.find(" MIG-") != report.npos;
}

std::vector<gpu_step> steps_of(gpu_check const& by) {
    return {
        {"driver", "the driver, its GPUs and NCCL are found", by.own("driver")},
        {"nvml", "the launcher finds the GPUs by NVML", {by.muster, "doctor"}, false, lists_gpus},
        {"binding", "each rank has its GPU and cores next to it", by.on_ranks(by.own("binding"))},
        {"kernels", "kernels pack and convert gradients", by.own("kernels")},
        {"nccl", "every collective, type and reduction by NCCL", by.on_ranks(by.own("nccl"))},
        {"exchange", "named tensors by NCCL through the exchange", by.on_ranks(by.own("exchange"))},
        {"hvd", "steps of muster.torch's DistributedOptimizer", by.torch("hvd"), true},
        {"ddp-muster", "steps of DDP on the backend \"muster\"", by.torch("ddp-muster"), true},
        {"ddp-nccl", "steps of DDP on torch's NCCL, started by muster", by.torch("ddp-nccl"), true},
        {"graph", "a step with its allreduce as a CUDA graph", by.torch("graph"), true},
    };
}

/// Returns the last line that is not the launcher's, if there is one.
std::string last_line(std::string_view output) {
    std::string_view last;
    for (auto const line : split(trim(output), '\n'))
        if (last.empty() || !(line.starts_with("muster: ") || line.starts_with("  "))) last = trim(line);
    return without_controls(last);
}

step_result run_step(gpu_step const& step, environment const& variables, stop_signals& signals, duration limit) {
    step_result result;
    if (limit <= duration{1}) return {"not run", "the ten minutes were over", {}, {}};
    watched_result ended;
    try {
        ended = run_watched(step.command, variables, signals, limit, [&](std::string_view piece) { result.output += piece; });
    } catch (program_error const& problem) {
        return {"not run", problem.what(), {}, {}};
    }
    result.wall = ended.wall;
    bool const right = step.shows ? step.shows(result.output) : ended.exit_code == 0;
    result.outcome = right ? "passed" : ended.exit_code == gpu_step_not_run ? "not run" : "failed";
    if (right) return result;
    result.why = last_line(result.output);
    if (ended.killed_at_limit) result.why = fmt::format("no end within {:.0f} s", limit.count());
    if (ended.stopped) result.why = fmt::format("stopped by signal {}", *ended.stopped);
    if (step.shows && result.outcome == "failed") result.why = fmt::format("{} shows no GPU", shell_join(step.command));
    if (result.why.empty()) result.why = fmt::format("exit code {}", ended.exit_code);
    return result;
}

nlohmann::ordered_json row_of(gpu_step const& step, step_result const& result) {
    nlohmann::ordered_json row{
        {"name", step.name}, {"what", step.what}, {"outcome", result.outcome}, {"seconds", result.wall.count()}};
    if (result.outcome == "passed") return row;
    row["why"] = result.why;
    auto const from = result.output.size() > most_kept_bytes ? result.output.size() - most_kept_bytes : 0;
    row["output"] = without_controls(std::string_view(result.output).substr(from));
    return row;
}

/// Returns what a finished check records besides its steps.
nlohmann::ordered_json document_head(gpu_check const& by, environment const& variables) {
    auto context = machine_json(describe_machine());
    context.erase("host");
    auto const origin = run_captured({by.muster, "--version"}, variables, std::chrono::seconds(10));
    auto const build = without_controls(trim(origin.out));
    return {{"schema", "muster.gpu-check/1"},
            {"muster", version()},
            {"build", split(build, '\n')},
            {"when", utc_now()},
            {"ranks", by.ranks},
            {"context", context},
            {"software", nlohmann::ordered_json::object()}};
}

void write_document(nlohmann::ordered_json const& document, std::string const& file) {
    write_output_file(file, document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
                      "give another file with -o");
}

/// Tries the steps one after the other, adds each to `document`, which it writes each time, and prints a line.
void try_steps(gpu_check const& by, nlohmann::ordered_json& document, std::string const& file, environment const& variables,
               stop_signals& signals) {
    auto const begin = clock::now();
    int passed = 0, failed = 0;
    std::string no_torch;  // the reason why the first step with torch did not run: the others would not run either
    for (auto const& step : steps_of(by)) {
        auto const left = std::min(step_limit, whole_limit - duration(clock::now() - begin));
        bool const hopeless = step.with_torch && !no_torch.empty();
        auto const result = hopeless ? step_result{"not run", no_torch, {}, {}} : run_step(step, variables, signals, left);
        if (step.with_torch && result.outcome == "not run") no_torch = result.why;
        for (auto const& [name, number] : read_versions(result.output)) document["software"][name] = number;
        document["steps"].push_back(row_of(step, result));
        passed += result.outcome == "passed";
        failed += result.outcome == "failed";
        fmt::print("{:8} {:11} {:50} {:5.1f} s{}{}\n", result.outcome, step.name, step.what, result.wall.count(),
                   result.why.empty() ? "" : "  ", result.why);
        std::fflush(stdout);
        document["passed"] = passed;
        document["failed"] = failed;
        write_document(document, file);
        if (signals.came()) break;
    }
}

gpu_check read_gpu_check(given_options const& given, int gpus) {
    gpu_check by;
    by.self = self_program().string();
    by.muster = launcher_of(given);
    by.python = given.text("python");
    by.ranks = given.has("ranks") ? count_of(given, "ranks") : std::clamp(gpus, 2, 8);
    by.per_gpu = (by.ranks + gpus - 1) / gpus;
    return by;
}

}  // namespace

constexpr command_row gpu_check_row{
    .name = "gpu-check",
    .summary = "try on this node's GPUs what muster does with them",
    .synopsis = "[options]",
    .examples = "  muster-bench gpu-check\n  srun --gpus=2 muster-bench gpu-check --python ~/venv/bin/python\n",
    .options = gpu_check_options,
    .description =
        "Tries what wants a GPU: driver, NVML, binding, kernels, NCCL, training steps. It takes up to ten minutes and writes one "
        "file that\n"
        "says what passed, with versions. Please send the file in: two GPUs have run parts of muster so far.",
    .closing = R"(
The file names the machine's hardware and software, not the host; it holds the end of the output of each step that did not pass, which
may name hosts and paths: read it before you send it. Exit code: 0; 1 where a step failed; 125 where there is no GPU. A step that
cannot run here (no torch for CUDA) is "not run" and says why.
)",
};

int gpu_check_command(given_options const& given, environment const& variables) {
    auto const& found = cuda::find_driver();
    if (found.use == nullptr)
        throw_error(errc::unavailable,
                    "gpu-check: no NVIDIA GPU on this node ({}); start it on one that has a GPU, such as by srun --gpus=1 "
                    "muster-bench gpu-check",
                    found.why_not);
    auto by = read_gpu_check(given, found.devices);
    auto const file = given.text("output");
    write_output_file(file, "", "give another file with -o");  // fails now instead of after ten minutes
    temporary_folder const folder("muster-gpu-check", variables);
    by.script = folder.path() + "/gpu_check_steps.py";
    write_output_file(by.script, find_text(gpu_check_files(), "gpu_check_steps.py"));
    auto document = document_head(by, variables);
    stop_signals signals;
    try_steps(by, document, file, variables, signals);
    int const failed = document["failed"];
    fmt::print("{} of {} passed, {} failed: {}; please send this file to muster's developers\n", document["passed"].get<int>(),
               document["steps"].size(), failed, file);
    if (auto const signal = signals.came()) return 128 + *signal;
    return failed == 0 ? 0 : 1;
}

}  // namespace muster
