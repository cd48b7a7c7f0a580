#include "bench/scaling/report_html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <kainjow/mustache.hpp>

#include "base/error.hpp"
#include "bench/scaling/published_table.hpp"
#include "bench/scaling/scaling_table.hpp"

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

std::string percent(double share) {
    return fmt::format("{:.2f}%", 100 * share);
}

data scaling_cells(scaling_row const& r, int cores) {
    data d;
    d.set("ranks", std::to_string(r.ranks));
    d.set("train", format_value(r.train_s.median));
    d.set("spread", format_spread(r.train_s));
    d.set("rate", fmt::format("{:.0f}", r.images_per_s.median));
    d.set("speedup", fmt::format("{:.2f}", r.speedup));
    d.set("efficiency", fmt::format("{:.0f}%", 100 * r.efficiency));
    d.set("accuracy", percent(r.accuracy.median));
    d.set("startup", format_value(r.startup_s));
    d.set("test", format_value(r.test_s));
    d.set("wall", format_value(r.wall_s));
    d.set("note", scaling_note(r, cores));
    return d;
}

data run_cells(study_run const& run) {
    double first = 0, images = 0, steady = 0, allreduce = 0, loader = 0;
    for (auto const& e : run.train.epochs_done) {
        first += e.first_step_s;
        images += e.images_per_s * e.steady_s;
        steady += e.steady_s;
        allreduce += e.allreduce_wait_mean_s;
        loader += e.loader_wait_mean_s;
    }
    auto const& last = run.train.epochs_done.back();
    data d;
    d.set("order", std::to_string(run.order + 1));
    d.set("ranks", std::to_string(run.ranks));
    d.set("repetition", std::to_string(run.repetition + 1));
    d.set("train", format_value(run.train.train_s()));
    d.set("first", format_value(1000 * first));
    d.set("rate", fmt::format("{:.0f}", steady > 0 ? images / steady : 0));
    d.set("allreduce", format_value(allreduce));
    d.set("loader", format_value(loader));
    d.set("test", format_value(run.train.test_s()));
    d.set("accuracy", percent(last.accuracy()));
    d.set("loss", fmt::format("{:.4f}", last.test_loss));
    d.set("load", run.load_before < 0 ? "" : fmt::format("{:.2f}", run.load_before));
    return d;
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
    int shown = 0;
    for (auto const& run : s.runs) {
        if (run.repetition != 0 || run.ranks <= shown) continue;
        shown = run.ranks;
        out += fmt::format("{}{}:", out.empty() ? "" : "; ", count(run.ranks, "rank"));
        for (auto const& p : run.train.ranks) out += fmt::format(" {}={}", p.rank, p.cores.empty() ? "?" : p.cores);
    }
    return out + " (rank=cores it may run on)";
}

data context(study const& s) {
    auto const& m = s.machine;
    auto const& t = s.runs.front().train;
    auto const [low, high] = std::minmax_element(s.runs.begin(), s.runs.end(),
                                                 [](auto const& a, auto const& b) { return a.load_before < b.load_before; });
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
        pair("Versions", fmt::format("muster {}; {}; built by {}", t.version, t.mpi_library, m.compiler)),
        pair("Kernels", fmt::format("{}; communicator backend {}; identity from {}", t.kernels, t.backend, t.identity_source)),
        pair("Bindings", bindings(s)),
        pair("Load before the runs", fmt::format("{:.2f} to {:.2f} (one-minute average)", low->load_before, high->load_before)),
        pair("Data", t.data),
        pair(
            "Settings",
            fmt::format(
                "SGD, rate {:g} x ranks, momentum {:g}, dropout {:g}, seed {}, batch {} a rank, buckets of {} bytes, protocol {}",
                t.rate / t.world_size, t.momentum, t.dropout, t.seed, t.batch, t.bucket_bytes, t.protocol)),
        pair("Study", s.command),
        pair("First run", s.launch_command),
    };
    return data(out);
}

data definitions() {
    list out{
        pair("train s",
             "Wall-clock seconds of all epochs' training, from a barrier before the first step to the end of the last step on "
             "the slowest rank. Start-up and test are not in it, the first step is."),
        pair("spread",
             "A confidence interval of the median from the order of the values alone (no normal distribution assumed). With few "
             "runs it is smallest to largest, with the confidence that this has."),
        pair("images/s", "Images of all ranks' steps after each epoch's first, over the seconds they took on the slowest rank."),
        pair("speed-up",
             "Median train s of the base over median train s of the row: the same images, each epoch once over the data."),
        pair("efficiency",
             "Speed-up x base ranks / ranks. Oversubscribed rows share cores and cannot exceed the bound by cores."),
        pair("accuracy",
             "Hits over all images of the test split, each counted exactly once over all ranks, after the last epoch."),
        pair("start-up s",
             "From main() to the barrier before the first step: MPI, opening and reading the data, allocating. Launching the "
             "process is not in it."),
        pair("allreduce wait",
             "Time in the wait for the last gradient bucket: communication that the backward pass did not hide, and waiting for "
             "slower ranks. Mean over the ranks."),
        pair("loader wait", "Time until the next batch was there. Mean over the ranks."),
        pair("compute", "The rest of training: train s less first step and the two waits."),
        pair("wall s", "The whole command as a user waits for it: launcher, start-up, training, test, exit."),
        pair("clocks",
             "std::chrono::steady_clock in each rank between common barriers; the maximum over ranks is taken by an allreduce. "
             "No clocks of different ranks are compared."),
    };
    return data(out);
}

data tile(std::string value, std::string what) {
    return pair(std::move(what), std::move(value));
}

list tiles(std::vector<scaling_row> const& rows, int cores) {
    auto const best = std::max_element(
        rows.begin(), rows.end(), [](auto const& a, auto const& b) { return a.images_per_s.median < b.images_per_s.median; });
    auto const ranks = [](scaling_row const& r) { return count(r.ranks, "rank"); };
    return {tile(fmt::format("{:.0f}", rows.front().images_per_s.median),
                 fmt::format("images/s of {}, the base", ranks(rows.front()))),
            tile(fmt::format("{:.0f}", best->images_per_s.median), fmt::format("images/s of {}, the most", ranks(*best))),
            tile(fmt::format("{:.2f}x", best->speedup),
                 fmt::format("its speed-up on {}, efficiency {:.0f}%", count(cores, "core"), 100 * best->efficiency)),
            tile(percent(rows.front().accuracy.median), fmt::format("test accuracy of {}", ranks(rows.front())))};
}

}  // namespace

std::string report_html(study const& s, report_plots const& plots) {
    auto const rows = scaling_rows(s);
    auto const& first = s.runs.front().train;
    data d;
    d.set("host", s.machine.host);
    d.set("created", s.created);
    d.set("parameters", "21,840");
    d.set("batch", std::to_string(first.batch));
    d.set("epochs_text", count(first.epochs, "epoch"));
    d.set("images", std::to_string(first.epochs_done.front().images));
    d.set("tiles", data(tiles(rows, s.machine.cores)));
    list table, runs;
    for (auto const& r : rows) table.push_back(scaling_cells(r, s.machine.cores));
    for (auto const& r : s.runs) runs.push_back(run_cells(r));
    d.set("rows", data(table));
    d.set("runs", data(runs));
    d.set("repeats", count(static_cast<std::int64_t>(rows.front().train_s.count), "run") + " each");
    d.set("base_ranks", count(rows.front().ranks, "rank"));
    d.set("base_s", format_value(rows.front().train_s.median));
    d.set("bound_text", s.machine.cores < rows.back().ranks ? " and the bound that the number of cores sets" : "");
    d.set("svg_speedup", plots.speedup);
    d.set("svg_throughput", plots.throughput);
    d.set("svg_split", plots.time_split);
    d.set("svg_published", plots.published);
    d.set("published", published());
    d.set("context", context(s));
    d.set("definitions", definitions());
    kainjow::mustache::mustache view{std::string(find_text(report_templates(), "report.html.mustache"))};
    expect(view.is_valid(), "the report's template is valid: " + view.error_message());
    return view.render(d);
}

}  // namespace muster
