#include "bench/scaling/report_html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <kainjow/mustache.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/scaling/published_table.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/scaling_table.hpp"

namespace muster {

namespace {

using kainjow::mustache::data;
using list = kainjow::mustache::list;

data pair(std::string what, std::string value) {
    data d;
    d.set("what", std::move(what));
    d.set("value", std::move(value));
    return d;
}

std::string count(std::int64_t n, std::string_view one) {
    return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s");
}

data cells_of(std::vector<std::string> const& values) {
    list out;
    for (auto const& value : values) {
        data d;
        d.set("value", value);
        out.push_back(d);
    }
    return data(out);
}

data row_of(std::vector<std::string> const& values, std::string const& note) {
    data d;
    d.set("cells", cells_of(values));
    d.set("note", note);
    return d;
}

/// The metrics of all rows, the judged one first.
std::vector<std::string> metric_names(std::vector<scaling_row> const& rows, judged_metric const& judged) {
    std::vector<std::string> out{judged.name};
    for (auto const& row : rows)
        for (auto const& metric : row.metrics)
            if (std::find(out.begin(), out.end(), metric.name) == out.end()) out.push_back(metric.name);
    return out;
}

std::string with_unit(std::string const& name, std::vector<scaling_row> const& rows) {
    for (auto const& row : rows)
        if (auto const* metric = row.find(name); metric != nullptr && !metric->unit.empty())
            return fmt::format("{} ({})", name, metric->unit);
    return name;
}

void set_table(data& page, study const& s, std::vector<scaling_row> const& rows) {
    auto const names = metric_names(rows, s.plan.judged);
    std::vector<std::string> head{"ranks", "nodes", "runs", with_unit(names.front(), rows), "spread", "speed-up", "efficiency"};
    for (std::size_t i = 1; i < names.size(); ++i) head.push_back(with_unit(names[i], rows));
    list table;
    for (auto const& r : rows) {
        auto const* judged = r.find(names.front());
        std::vector<std::string> cells{std::to_string(r.ranks),
                                       std::to_string(r.nodes),
                                       std::to_string(r.runs),
                                       judged ? format_value(judged->value.median) : "-",
                                       judged ? format_spread(judged->value) : "-",
                                       format_speedup(r),
                                       format_efficiency(r)};
        for (std::size_t i = 1; i < names.size(); ++i)
            cells.push_back(r.find(names[i]) ? format_value(r.median_of(names[i])) : "-");
        table.push_back(row_of(cells, scaling_note(r, s.machine.cores)));
    }
    page.set("head", cells_of(head));
    page.set("rows", data(table));
}

void set_runs(data& page, study const& s, std::vector<scaling_row> const& rows) {
    auto const names = metric_names(rows, s.plan.judged);
    std::vector<std::string> head{"order", "ranks", "repetition", "started"};
    for (auto const& name : names) head.push_back(with_unit(name, rows));
    head.insert(head.end(), {"load before", "others' CPUs"});
    list runs;
    study one;  // of a single run, so that its values are chosen as in the table
    one.plan = s.plan;
    for (auto const& run : s.runs) {
        one.runs = {run};
        one.runs.front().warmup = false;
        auto const row = scaling_rows(one).front();
        std::vector<std::string> cells{std::to_string(run.order + 1), std::to_string(run.ranks),
                                       run.warmup ? "warm-up" : std::to_string(run.repetition + 1), run.started};
        for (auto const& name : names) cells.push_back(row.find(name) ? format_value(row.median_of(name)) : "-");
        cells.push_back(run.load.average < 0 ? "" : fmt::format("{:.2f}", run.load.average));
        cells.push_back(fmt::format("{:.2f}", std::max(run.load.before, run.load.during.value_or(0))));
        runs.push_back(row_of(cells, run.status == run_status::ok
                                         ? std::string()
                                         : fmt::format("{}: {}; see {}", to_string(run.status), run.reason, run.output)));
    }
    page.set("run_head", cells_of(head));
    page.set("runs", data(runs));
}

data published() {
    list out;
    for (auto const& p : published_rows) {
        data d;
        d.set("gpus", std::to_string(p.gpus));
        d.set("mnist_s", fmt::format("{:.1f}", p.mnist_s));
        d.set("mnist_speedup", fmt::format("{:.2f}", p.mnist_speedup));
        d.set("mnist_ms", std::to_string(p.mnist_step_ms));
        d.set("cifar_s", fmt::format("{:.1f}", p.cifar_s));
        d.set("cifar_speedup", fmt::format("{:.2f}", p.cifar_speedup));
        d.set("cifar_ms", std::to_string(p.cifar_step_ms));
        out.push_back(d);
    }
    return data(out);
}

std::string bindings(study const& s) {
    std::string out;
    for (auto const& point : s.points) {
        out += fmt::format("{}{}:", out.empty() ? "" : "; ", count(point.ranks, "rank"));
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

void add_training(list& out, train_record const& t) {
    out.push_back(pair("MPI", t.mpi_library));
    out.push_back(
        pair("Kernels", fmt::format("{}; communicator backend {}; identity from {}", t.kernels, t.backend, t.identity_source)));
    out.push_back(pair("Data", t.data));
    out.push_back(pair(
        "Settings",
        fmt::format(
            "SGD, rate {:g} x ranks, momentum {:g}, dropout {:g}, seed {}, batch {} a rank, buckets of {} bytes, protocol {}",
            t.rate / t.world_size, t.momentum, t.dropout, t.seed, t.batch, t.bucket_bytes, t.protocol)));
}

data context(study const& s, train_record const* training) {
    auto const& m = s.machine;
    auto const [low, high] = std::minmax_element(s.runs.begin(), s.runs.end(),
                                                 [](auto const& a, auto const& b) { return a.load.average < b.load.average; });
    list out{
        pair("Machine", fmt::format("{}: {}, {}{}, {:.1f} GiB memory", m.host,
                                    m.processor.empty() ? "unknown processor" : m.processor, count(m.cores, "core"),
                                    m.virtualised ? ", virtual machine" : "", static_cast<double>(m.memory_bytes) / 0x1p30)),
        pair("Clock", fmt::format("{}; governor: {}",
                                  m.clock_mhz > 0 ? fmt::format("{:.0f} MHz as the system said before the runs", m.clock_mhz)
                                                  : "not told by the system",
                                  m.governor.empty() ? "not visible" : m.governor)),
        pair("GPUs", m.gpus),
        pair("System", fmt::format("{}, {}", m.system, m.kernel)),
        pair("Versions", fmt::format("muster {}, built by {}", s.version, m.compiler)),
        pair("Scheduler", s.scheduler),
        pair("Bindings", bindings(s)),
        pair("Load before the study", crowd_text(s.load)),
        pair("Load before the runs", fmt::format("{:.2f} to {:.2f} (one-minute average)", low->load.average, high->load.average)),
        pair("Environment", variables_text(s)),
    };
    if (training != nullptr) add_training(out, *training);
    out.push_back(pair("Study", s.command));
    out.push_back(pair("First run", s.launch_command));
    return data(out);
}

void add_training_definitions(list& out) {
    out.push_back(
        pair("train_s",
             "Wall-clock seconds of all epochs' training, from a barrier before the first step to the end of the last step "
             "on the slowest rank. Start-up and test are not in it, the first step is."));
    out.push_back(pair("images_per_s",
                       "Images of all ranks' steps after each epoch's first, over the seconds they took on the slowest rank."));
    out.push_back(
        pair("accuracy",
             "Hits over all images of the test split, each counted exactly once over all ranks, after the last epoch; 0 to 1."));
    out.push_back(
        pair("startup_s",
             "From main() to the barrier before the first step: MPI, opening and reading the data, allocating. Launching "
             "the process is not in it."));
    out.push_back(pair("allreduce_wait_s",
                       "Time in the wait for the last gradient bucket: communication that the backward pass did not hide, and "
                       "waiting for slower ranks. Mean over the ranks."));
    out.push_back(pair("loader_wait_s", "Time until the next batch was there. Mean over the ranks."));
    out.push_back(pair("compute_s", "The rest of training: train_s less first step and the two waits."));
    out.push_back(pair("clocks",
                       "std::chrono::steady_clock in each rank between common barriers; the maximum over ranks is taken by an "
                       "allreduce. No clocks of different ranks are compared."));
}

data definitions(study const& s) {
    auto const& judged = s.plan.judged;
    list out{
        pair(
            "spread",
            "A confidence interval of the median from the order of the values alone (no normal distribution assumed). Fewer than "
            "six runs give none: then it is the range, smallest to largest."),
        pair("speed-up",
             judged.rate ? fmt::format("Median {} of the row over that of the base.", judged.name)
             : s.plan.series == work_series::weak
                 ? fmt::format(
                       "Median {} of the base over that of the row, times ranks over base ranks: the work done in a second.",
                       judged.name)
                 : fmt::format("Median {} of the base over that of the row.", judged.name)),
        pair("within the spread", "The spreads of row and base do not tell whether the one is faster or slower than the other."),
        pair("efficiency",
             "Speed-up x base ranks / ranks. Oversubscribed rows share cores and cannot exceed the bound by cores."),
        pair("wall_s", "The whole command as a user waits for it: launcher, start-up, the program's work, exit."),
        pair("busy", "Other programs used more than a tenth of the CPUs before or during a run."),
    };
    if (s.plan.built_in)
        add_training_definitions(out);
    else
        out.push_back(pair(
            "metrics", "Told by the program. The last value that the lowest rank told counts, unless --take says otherwise."));
    return data(out);
}

data tile(std::string value, std::string what) {
    return pair(std::move(what), std::move(value));
}

/// The worst news first; then the base, and the largest number of ranks that is not oversubscribed.
list tiles(study const& s, std::vector<scaling_row> const& rows) {
    list out;
    std::size_t failed = 0, made = 0;
    bool busy = s.load.crowded_before();
    for (auto const& row : rows) {
        failed += row.failed;
        made += row.failed + row.runs;
        busy |= row.crowded;
    }
    if (failed > 0)
        out.push_back(tile(std::to_string(failed), fmt::format("of {} failed", count(static_cast<std::int64_t>(made), "run"))));
    if (busy) out.push_back(tile("busy", "other programs worked: these figures mean little"));
    auto const* base = base_row(rows, s.plan);
    if (base == nullptr) return out;
    auto const& judged = s.plan.judged.name;
    auto const* best = base;
    for (auto const& row : rows)
        if (row.speedup && !row.oversubscribed) best = &row;
    auto const add = [&](scaling_row const& row, std::string const& what) {
        auto const* metric = row.find(judged);
        out.push_back(
            tile(format_value(metric->value.median), fmt::format("{} of {}{} ({})", with_unit(judged, rows),
                                                                 count(row.ranks, "rank"), what, format_spread(metric->value))));
    };
    add(*base, ", the base");
    if (best == base) return out;
    add(*best, "");
    out.push_back(tile(best->speedup->within_spread ? "none" : fmt::format("{:.2f}x", best->speedup->value),
                       best->speedup->within_spread
                           ? "speed-up that the spread lets see"
                           : fmt::format("its speed-up ({:.2f} to {:.2f}), efficiency {}", best->speedup->low,
                                         best->speedup->high, format_efficiency(*best))));
    return out;
}

std::string subtitle(study const& s, train_record const* training) {
    if (training != nullptr)
        return fmt::format("MNIST network, 21,840 parameters, batch {} a rank, {} of {} images", training->batch,
                           count(training->epochs, "epoch"), training->epochs_done.front().images);
    auto const series = s.plan.series == work_series::as_given ? "" : fmt::format("{} series", to_string(s.plan.series));
    auto const batch = s.plan.batch ? fmt::format(", batch {}", *s.plan.batch) : "";
    return shell_join(s.plan.program) + (series.empty() ? "" : ", ") + series + batch;
}

}  // namespace

std::string report_html(study const& s, report_plots const& plots) {
    auto const rows = scaling_rows(s);
    auto const with_record = std::find_if(s.runs.begin(), s.runs.end(), [](auto const& r) { return r.train.has_value(); });
    auto const* training = s.plan.built_in && with_record != s.runs.end() ? &*with_record->train : nullptr;
    auto const* base = base_row(rows, s.plan);
    data d;
    d.set("title", training != nullptr ? "data-parallel training" : s.name);
    d.set("subtitle", subtitle(s, training));
    d.set("host", s.machine.host);
    d.set("created", s.created);
    bool const busy = s.load.crowded_before() || std::any_of(rows.begin(), rows.end(), [](auto const& r) { return r.crowded; });
    if (busy)
        d.set("busy", s.load.crowded_before() ? fmt::format("Before the runs {}.", crowd_text(s.load))
                                              : "Other programs worked during the runs that the table notes.");
    d.set("tiles", data(tiles(s, rows)));
    set_table(d, s, rows);
    auto const causes = find_causes(s);
    list explained;
    for (auto const& each : causes) {
        data item;
        item.set("why", std::string(to_string(each.why)));
        item.set("text", each.text);
        item.set("advice", each.advice);
        explained.push_back(item);
    }
    d.set("explained", !causes.empty());
    d.set("causes", data(explained));
    set_runs(d, s, rows);
    if (base != nullptr) {
        d.set("base", fmt::format("Medians. The base of every speed-up is {} at {} {}.", count(base->ranks, "rank"),
                                  s.plan.judged.name, format_value(base->median_of(s.plan.judged.name))));
        d.set("bound_text", s.machine.cores < rows.back().ranks ? " and the bound that the number of cores sets" : "");
        d.set("svg_speedup", plots.speedup);
        d.set("svg_judged", plots.judged);
        d.set("judged", s.plan.judged.name);
    }
    d.set("compared", base != nullptr);
    d.set("training", training != nullptr);
    d.set("svg_split", plots.time_split);
    d.set("svg_published", plots.published);
    d.set("published", published());
    d.set("context", context(s, training));
    d.set("definitions", definitions(s));
    kainjow::mustache::mustache view{std::string(find_text(report_templates(), "report.html.mustache"))};
    expect(view.is_valid(), "the report's template is valid: " + view.error_message());
    return view.render(d);
}

}  // namespace muster
