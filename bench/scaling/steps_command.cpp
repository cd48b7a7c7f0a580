#include "bench/tools/commands.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <thread>
#include <vector>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "bench/tools/gradient_sets.hpp"
#include "bench/tools/options.hpp"
#include "comm/exchange/exchange.hpp"
#include "pmix/identity.hpp"

namespace muster {

namespace {

using steady = std::chrono::steady_clock;

constexpr option_row steps_options[]{
    {"net", 0, "NAME", "resnet50 or gpt2-small", "resnet50", false, "resnet50 gpt2-small"},
    {"epochs", 0, "N", "how often --steps are made and told", "1"},
    {"steps", 0, "N", "steps of an epoch", "20"},
    {"batch", 0, "N", "samples a rank and step: for the rate only", "64"},
    {"compute-ms", 0, "X", "a step without communication, a third of it forward", "100"},
    {"compute-by", 0, "HOW", "burn (processor time) or wait (as for an accelerator)", "burn", false, "burn wait"},
};

struct asked_steps {
    std::string net;
    int epochs = 1, steps = 20, batch = 64;
    double compute_s = 0.1;
    bool burn = true;
};

asked_steps read_steps(given_options const& given) {
    asked_steps out;
    out.net = given.text("net");
    if (!is_timed_network(out.net)) throw_error(errc::usage, "--net: '{}' is unknown; give resnet50 or gpt2-small", out.net);
    out.epochs = count_of(given, "epochs");
    out.steps = count_of(given, "steps");
    out.batch = count_of(given, "batch");
    out.compute_s = given.real("compute-ms") / 1e3;
    if (!(out.compute_s >= 0 && out.compute_s < 1e6))
        throw_error(errc::usage, "--compute-ms is {}, expected at least 0", given.text("compute-ms"));
    auto const how = given.text("compute-by");
    if (how != "burn" && how != "wait") throw_error(errc::usage, "--compute-by is '{}', expected burn or wait", how);
    out.burn = how == "burn";
    return out;
}

double since(steady::time_point begin) {
    return std::chrono::duration<double>(steady::now() - begin).count();
}

double thread_s() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// One gradient: its part of the memory of all, and the time of the backward pass before it is ready.
struct timed_gradient {
    std::string name;
    std::span<float> values;
    double backward_s;
};

/// A rank's times of an epoch.
struct step_times {
    double train_s = 0, first_step_s = 0, waited_s = 0;
};

class timed_steps {
  public:
    timed_steps(asked_steps const& asked, exchange& ranks) : asked_(asked), ranks_(ranks) {
        auto const set = gradients_of(asked.net);
        double const all = std::accumulate(set.work.begin(), set.work.end(), 0.0);
        memory_.assign(set.parameters(), static_cast<float>(ranks.rank()));
        std::size_t first = 0;
        for (std::size_t i = set.elements.size(); i-- > 0;) {  // in the order in which the backward pass completes them
            gradients_.push_back({fmt::format("{}.{}", set.name, i), std::span(memory_).subspan(first, set.elements[i]),
                                  set.work[i] / all * asked.compute_s * 2 / 3});
            first += set.elements[i];
        }
        pending_.reserve(gradients_.size());
    }

    std::size_t parameters() const noexcept { return memory_.size(); }

    step_times epoch() {
        step_times out;
        ranks_.barrier().wait();
        auto const begin = steady::now();
        for (int i = 0; i < asked_.steps; ++i) {
            out.waited_s += step();
            if (i == 0) out.first_step_s = since(begin);
            if (!std::exchange(checked_, true)) check_average();
        }
        ranks_.barrier().wait();
        out.train_s = since(begin);
        return out;
    }

  private:
    void compute(double seconds) const {
        if (seconds <= 0) return;
        if (!asked_.burn) return std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        double const until = thread_s() + seconds;
        while (thread_s() < until) {
        }
    }

    /// Returns the seconds that it waited for gradients after the backward pass.
    double step() {
        compute(asked_.compute_s / 3);
        for (auto& each : gradients_) {
            compute(each.backward_s);
            auto const view = view_of(each.values);
            pending_.push_back(ranks_.allreduce(each.name, view, view, reduction::average));
        }
        auto const waiting = steady::now();
        for (auto const& each : pending_) each.wait();
        pending_.clear();
        return since(waiting);
    }

    void check_average() const {
        float const wanted = static_cast<float>(ranks_.size() - 1) / 2;
        for (auto const& each : gradients_)
            for (std::size_t const at : {std::size_t{0}, each.values.size() / 2, each.values.size() - 1})
                if (!(std::abs(each.values[at] - wanted) <= 1e-5f * std::max(1.0f, wanted)))
                    throw_error(
                        errc::internal,
                        "rank {}: {} holds {} after the reduction, expected the average {}; try another MUSTER_COMM_BACKEND",
                        ranks_.rank(), each.name, each.values[at], wanted);
    }

    asked_steps const& asked_;
    exchange& ranks_;
    std::vector<float> memory_;
    std::vector<timed_gradient> gradients_;
    std::vector<exchange_handle> pending_;
    bool checked_ = false;
};

/// Prints the line of a metric, as bench/metric.hpp does for other programs.
void metric(std::string_view name, double value, std::string_view unit = "") {
    fmt::print("muster-metric: {} {:.12g} {}\n", name, value, unit);
    std::fflush(stdout);
}

double sum_of(std::vector<step_times> const& all, double step_times::*part) {
    return std::accumulate(all.begin(), all.end(), 0.0, [&](double sum, auto const& each) { return sum + each.*part; });
}

void tell(asked_steps const& asked, int ranks, double startup_s, std::vector<step_times> const& all) {
    double const train = sum_of(all, &step_times::train_s), later = train - sum_of(all, &step_times::first_step_s);
    double const epochs = static_cast<double>(all.size());
    metric("train_s", train, "s");
    metric("images_per_s", later > 0 ? epochs * (asked.steps - 1) * asked.batch * ranks / later : 0, "images/s");
    metric("startup_s", startup_s, "s");
    metric("first_step_s", sum_of(all, &step_times::first_step_s), "s");
    metric("allreduce_wait_s", sum_of(all, &step_times::waited_s), "s");
    metric("first_epoch_s", all.front().train_s, "s");
    std::vector<step_times> const last(all.end() - std::min<std::ptrdiff_t>(5, std::ssize(all)), all.end());
    metric("epoch_s", sum_of(last, &step_times::train_s) / static_cast<double>(last.size()), "s");
    metric("steps", epochs * asked.steps);
}

}  // namespace

bool is_timed_network(std::string_view name) noexcept {
    return name == "resnet50" || name == "gpt2-small";
}

constexpr command_row steps_row{
    .name = "steps",
    .summary = "training steps of resnet50 or gpt2-small: timed compute, gradients through the exchange",
    .synopsis = "[options]",
    .examples =
        "  muster run -n 2 -- muster-bench steps --net resnet50 --compute-ms 120\n"
        "  muster-bench scale --time-metric train_s -- muster-bench steps --net resnet50 --compute-ms 120\n",
    .options = steps_options,
    .description =
        "Nothing is trained: compute is time that passes, gradients have the network's sizes and come in its order. To be\n"
        "started on several ranks. Prints the metrics that muster-bench scale reads. MUSTER_COMM_BACKEND names the backend.",
};

int steps_command(given_options const& given, environment const& variables) {
    auto const began = steady::now();
    auto const asked = read_steps(given);
    exchange ranks(identify(variables), read_exchange_options(variables));
    timed_steps work(asked, ranks);
    ranks.barrier().wait();
    double const startup_s = since(began);
    std::vector<step_times> all;
    for (int e = 0; e < asked.epochs; ++e) {
        all.push_back(work.epoch());
        auto const& last = all.back();
        if (ranks.rank() == 0)
            fmt::print("epoch {}/{}: {}, {:.3f} s ({:.1f} ms a step after the first)\n", e + 1, asked.epochs,
                       counted(asked.steps, "step"), last.train_s,
                       asked.steps > 1 ? 1e3 * (last.train_s - last.first_step_s) / (asked.steps - 1) : 0);
    }
    if (ranks.rank() == 0) {
        tell(asked, ranks.size(), startup_s, all);
        fmt::print("{} with {} parameters on {} by {}: {:g} ms a step by {}, nothing is trained\n", asked.net, work.parameters(),
                   counted(ranks.size(), "rank"), ranks.backend(), asked.compute_s * 1e3,
                   asked.burn ? "processor time" : "waiting");
    }
    metric("compute_s", sum_of(all, &step_times::train_s) - sum_of(all, &step_times::waited_s), "s");
    return 0;
}

}  // namespace muster
