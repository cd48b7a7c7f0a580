#include "bench/report/study_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

namespace {

std::string bindings(study const& s) {
    std::string out;
    for (auto const& point : s.points) {
        out += fmt::format("{}{}:", out.empty() ? "" : "; ", counted(point.ranks, "rank"));
        for (auto const& p : point.places)
            out += fmt::format(" {}={}{}", p.rank, p.cpus.empty() ? "any" : p.cpus,
                               p.gpu.empty() ? std::string() : fmt::format("/GPU {}", p.gpu));
    }
    return out + " (rank=cores it may run on, as muster plan said)";
}

std::string variables_text(study const& s) {
    std::string out;
    for (auto const& [name, value] : s.variables) out += fmt::format("{}{}={}", out.empty() ? "" : "; ", name, value);
    return out.empty() ? "none that bears upon speed" : out;
}

/// Covers the runs before which the system reported a load.
std::string load_text(study const& s) {
    std::vector<double> told;
    for (auto const& run : s.runs)
        if (run.load.average >= 0) told.push_back(run.load.average);
    if (told.empty()) return "not known: the system tells no load average";
    auto const [low, high] = std::ranges::minmax_element(told);
    auto const text = fmt::format("{:.2f} to {:.2f} (one-minute average)", *low, *high);
    auto const silent = s.runs.size() - told.size();
    return silent == 0 ? text : fmt::format("{}; not known of {} of {} runs", text, silent, s.runs.size());
}

/// The definitions of the training program that comes with muster-bench: see examples/published_table.py and steps_command.cpp.
std::vector<report_fact> training_definitions() {
    return {
        {"train_s",
         "Wall-clock seconds of all epochs' training on rank 0, from a reduction in which all ranks meet before the "
         "first step to one after the last. Start-up and test are not in it, the first step is."},
        {"images_per_s", "Images of all ranks' steps after each epoch's first, over the seconds they took."},
        {"accuracy",
         "Hits over all images of the test split, each counted exactly once over all ranks, after the last epoch; 0 to 1."},
        {"startup_s",
         "From the program's first line to the first step: loading PyTorch, meeting the ranks, opening and reading the "
         "data. Launching the process is not in it."},
        {"allreduce_wait_s",
         "On rank 0, from the gradient of the first layer, the backward pass's last, to the last average: communication "
         "that the backward pass did not hide, and waiting for slower ranks."},
        {"loader_wait_s", "On rank 0, the time until the next batch was there."},
        {"compute_s", "Of each rank, the rest of training: train_s less the two above."},
        {"published_s", "All of train_s and test_s, without start-up; published_with_startup_s is with it."},
        {"first_epoch_s, epoch_s", "Training of the first epoch; mean of the last five epochs, or of all where there are fewer."},
        {"clocks",
         "The monotonic clock of rank 0 between points where all ranks meet; of a GPU after it has done what it "
         "was given. No clocks of different ranks are compared."},
    };
}

/// Members of an object, and of objects within it, by "a/b".
void flatten(nlohmann::json const& value, std::string const& name, std::vector<std::pair<std::string, std::string>>& out) {
    if (value.is_object()) {
        for (auto const& [member, inside] : value.items()) flatten(inside, name.empty() ? member : name + "/" + member, out);
    } else if (value.is_array() && std::ranges::all_of(value, [](auto const& each) { return each.is_string(); })) {
        out.emplace_back(name, shell_join(value.get<std::vector<std::string>>()));
    } else if (!value.is_null()) {
        out.emplace_back(name, value.is_string() ? value.get<std::string>()
                                                 : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
}

std::string software_text(study const& s) {
    std::vector<std::string> out;
    for (auto const& [name, version] : s.software)
        out.push_back(version.starts_with(name) ? version : fmt::format("{} {}", name, version));
    return out.empty() ? "no versions recorded" : join(out, ", ");
}

/// Returns whether the report says the factor in words.
bool is_told(std::string const& name) {
    constexpr std::string_view told[]{
        "host",   "processor",   "cores",  "clock_mhz",      "governor", "memory_bytes", "system",  "kernel",  "compiler",
        "gpus",   "virtualised", "plan",   "points",         "runs",     "variables",    "load",    "command", "created",
        "schema", "name",        "folder", "launch_command", "version",  "scheduler",    "software"};
    return std::find(std::begin(told), std::end(told), name) != std::end(told);
}

/// Adds the recorded factors that the report has no words for.
void add_others(study const& s, std::vector<report_fact>& out) {
    auto const document = to_json(s);
    std::vector<std::pair<std::string, std::string>> found;
    for (auto const& [name, value] : document.at("context").items())
        if (!is_told(name)) flatten(value, name, found);
    for (auto const& [name, value] : document.items())
        if (name != "context" && !is_told(name)) flatten(value, name, found);
    for (auto& [name, value] : found)
        if (!value.empty() && value != "[]") out.push_back({std::move(name), std::move(value)});
}

}  // namespace

std::vector<report_fact> study_context(study const& s) {
    auto const& m = s.machine;
    std::vector<report_fact> out{
        {"Machine", fmt::format("{}: {}, {}{}, {:.1f} GiB memory", m.host,
                                m.processor.empty() ? "unknown processor" : m.processor, counted(m.cores, "core"),
                                m.virtualised ? ", virtual machine" : "", static_cast<double>(m.memory_bytes) / 0x1p30)},
        {"Clock", fmt::format("{}; governor: {}",
                              m.clock_mhz > 0 ? fmt::format("{:.0f} MHz as the system said before the runs", m.clock_mhz)
                                              : "not told by the system",
                              m.governor.empty() ? "not visible" : m.governor)},
        {"GPUs", m.gpus},
        {"System", fmt::format("{}, {}", m.system, m.kernel)},
        {"Versions", fmt::format("muster {}, built by {}", s.version, m.compiler)},
        {"Software", software_text(s)},
        {"Scheduler", s.scheduler},
        {"Bindings", bindings(s)},
        {"Load before the study", crowd_text(s.load)},
        {"Load before the runs", load_text(s)},
        {"Environment", variables_text(s)},
        {"Study", s.command},
        {"First run", s.launch_command},
        {"Working directory", s.folder},
    };
    add_others(s, out);
    return out;
}

std::vector<report_fact> study_definitions(study const& s) {
    auto const& judged = s.plan.judged;
    std::vector<report_fact> out{
        {"spread",
         fmt::format("A confidence interval of the median from the order of the values alone (no normal distribution assumed). "
                     "Fewer than {} runs give none: then it is the range, smallest to largest.",
                     runs_for_interval)},
        {"speed-up",
         judged.rate ? fmt::format("Median {} of the row over that of the base.", judged.name)
         : s.plan.series == work_series::weak
             ? fmt::format("Median {} of the base over that of the row, times ranks over base ranks: the work done in a second.",
                           judged.name)
             : fmt::format("Median {} of the base over that of the row.", judged.name)},
        {"within the spread", "The spreads of row and base do not tell whether the one is faster or slower than the other."},
        {"efficiency", "Speed-up x base ranks / ranks. Oversubscribed rows share cores and cannot exceed the bound by cores."},
        {"wall_s", "The whole command as a user waits for it: launcher, start-up, the program's work, exit."},
        {"busy", "Other programs used more than a tenth of the CPUs before or during a run."},
    };
    if (s.plan.has_net())
        std::ranges::copy(training_definitions(), std::back_inserter(out));
    else
        out.push_back(
            {"metrics", "Told by the program. The last value that the lowest rank told counts, unless --take says otherwise."});
    return out;
}

std::string study_subtitle(study const& s) {
    if (s.plan.has_net())
        return fmt::format("{} network, protocol {}: {}", s.plan.net, s.plan.protocol, shell_join(s.plan.program));
    auto const series = s.plan.series == work_series::as_given ? "" : fmt::format("{} series", to_string(s.plan.series));
    auto const batch = s.plan.batch ? fmt::format(", batch {}", *s.plan.batch) : "";
    return shell_join(s.plan.program) + (series.empty() ? "" : ", ") + series + batch;
}

std::vector<std::pair<std::string, std::string>> study_settings(study const& s) {
    auto const document = to_json(s);
    std::vector<std::pair<std::string, std::string>> out;
    for (auto const& [name, value] : document.items()) {
        bool const of_one = name == "created" || name == "command" || name == "launch_command" || name == "load" ||
                            name == "points" || name == "runs" || name == "schema";
        if (!of_one) flatten(value, name, out);
    }
    std::erase_if(out, [](auto const& each) { return each.first == "context/clock_mhz"; });
    return out;
}

}  // namespace muster
