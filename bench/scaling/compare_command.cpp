#include "bench/scaling/compare_command.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.hpp"
#include "base/process/run_captured.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/text_table.hpp"
#include "bench/peers/peer.hpp"
#include "bench/study/scaling_table.hpp"
#include "bench/tools/checked_json.hpp"
#include "bench/tools/machine.hpp"
#include "bench/tools/options.hpp"
#include "bench/tools/statistics.hpp"
#include "bench/training/train_record.hpp"

namespace muster {

namespace {

constexpr option_row compare_options[]{
    {"data", 0, "FILE.h5", "as for muster-bench train", ""},
    {"repeats", 0, "N", "runs of each, taking turns, each pair with the next seed", "3"},
    {"seed", 0, "N", "seed of the first pair", "42"},
    {"epochs", 0, "N", "passes over the training images", "1"},
    {"batch", 0, "N", "images a step", "64"},
    {"python", 0, "PATH", "an interpreter with torch, numpy and h5py", "/usr/bin/python3"},
    {"json", 0, "FILE|-", "every run (schema muster.comparison/1)", ""},
};

struct pair_of_runs {
    std::uint64_t seed = 0;
    double load_before = 0;
    train_record own;
    peer_record peer;
};

train_record run_own(std::vector<std::string> const& options, environment const& variables) {
    std::vector<std::string> command{self_program().string(), "train", "--json", "-"};
    command.insert(command.end(), options.begin(), options.end());
    auto const result = run_program(command, variables, foreground());
    if (result.exit_status != 0)
        throw error(errc::peer_failed,
                    fmt::format("{} ended with exit code {}; its messages are above", shell_join(command), result.exit_status));
    auto const document = parse_json(result.out, "what muster-bench train printed");
    return read_train_record(checked_json(document, "what muster-bench train printed"));
}

template <class Measure>
summary of(std::vector<pair_of_runs> const& runs, Measure const& measure) {
    std::vector<double> values;
    for (auto const& r : runs) values.push_back(measure(r));
    return summarise(values);
}

template <class Measure>
double mean(std::vector<pair_of_runs> const& runs, Measure const& measure) {
    double sum = 0;
    for (auto const& r : runs) sum += measure(r);
    return sum / static_cast<double>(runs.size());
}

double own_accuracy(pair_of_runs const& r) {
    return 100 * r.own.epochs_done.back().accuracy();
}
double peer_accuracy(pair_of_runs const& r) {
    return 100 * r.peer.accuracy;
}
double own_rate(pair_of_runs const& r) {
    return r.own.epochs_done.back().images_per_s;
}

void print_table(std::vector<pair_of_runs> const& runs) {
    auto const& peer = runs.front().peer;
    auto const a = of(runs, own_rate), b = of(runs, [](auto const&r) { return r.peer.images_per_s; });
    auto const at = of(runs, [](auto const&r) { return r.own.train_s(); }),
               bt = of(runs, [](auto const&r) { return r.peer.train_s; });
    auto const as = of(runs, [](auto const&r) { return r.own.startup_s; }),
               bs = of(runs, [](auto const&r) { return r.peer.startup_s; });
    auto const range = [](summary const& s, int digits) {
        return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", s.median, digits, s.smallest, digits, s.largest, digits);
    };
    double const own_mean = mean(runs, own_accuracy), peer_mean = mean(runs, peer_accuracy);
    std::vector<std::vector<std::string>> const rows{
        {"median (smallest to largest)", fmt::format("muster {}", runs.front().own.version),
         fmt::format("{} {}", peer.name, peer.version), "ratio"},
        {"images/s", range(a, 0), range(b, 0), fmt::format("{:.2f}x", a.median / b.median)},
        {"training s", range(at, 3), range(bt, 3), fmt::format("{:.2f}x", bt.median / at.median)},
        {"start-up s", range(as, 3), range(bs, 3), fmt::format("{:.2f}x", bs.median / as.median)},
        {"accuracy %", range(of(runs, own_accuracy), 2), range(of(runs, peer_accuracy), 2),
         fmt::format("{:+.2f} points (means {:.2f} and {:.2f})", own_mean - peer_mean, own_mean, peer_mean)},
    };
    fmt::print("{}", align_columns(rows));
    fmt::print(
        "{} pair{} of runs, taking turns, seeds {} to {}; one thread each ({} kernels; {}); images/s after the first step\n",
        runs.size(), runs.size() == 1 ? "" : "s", runs.front().seed, runs.back().seed, runs.front().own.kernels, peer.details);
}

nlohmann::json to_json(std::vector<pair_of_runs> const& runs, std::string const& created) {
    auto const machine = describe_machine();
    nlohmann::json out{{"schema", "muster.comparison/1"},
                       {"created", created},
                       {"context", nlohmann::json(machine_json(machine))},
                       {"runs", nlohmann::json::array()}};
    for (auto const& r : runs)
        out["runs"].push_back({{"seed", r.seed},
                               {"load_before", r.load_before},
                               {"muster", muster::to_json(r.own)},
                               {"peer",
                                {{"name", r.peer.name},
                                 {"version", r.peer.version},
                                 {"details", r.peer.details},
                                 {"startup_s", r.peer.startup_s},
                                 {"train_s", r.peer.train_s},
                                 {"images_per_s", r.peer.images_per_s},
                                 {"accuracy", r.peer.accuracy}}}});
    return out;
}

}  // namespace

constexpr command_row compare_row{
    .name = "compare",
    .summary = "one rank against PyTorch, one thread each",
    .synopsis = "--data FILE.h5 [options]",
    .examples = "  muster-bench compare --data fashion-mnist.h5\n",
    .options = compare_options,
};

int compare_command(given_options const& given, environment const& variables) {
    auto const data = given.needed("data");
    auto const repeats = static_cast<int>(given.integer("repeats", 1, 1000));
    auto const first_seed = seed_of(given, "seed");
    auto const json = given.text("json");
    auto const created = utc_now();
    std::vector<pair_of_runs> runs;
    for (int i = 0; i < repeats; ++i) {
        pair_of_runs r;
        r.seed = first_seed + static_cast<std::uint64_t>(i);
        std::vector<std::string> const options{"--data",   data,
                                               "--epochs", std::to_string(count_of(given, "epochs")),
                                               "--batch",  std::to_string(count_of(given, "batch")),
                                               "--seed",   std::to_string(r.seed)};
        r.load_before = load_average();
        r.own = run_own(options, variables);
        r.peer = run_torch_peer(given.text("python"), options, variables);
        if (r.peer.parameters != 21840)
            throw error(errc::internal,
                        fmt::format("the peer's network has {} parameters, expected 21840: it is not the same network",
                                    r.peer.parameters));
        fmt::print(stderr, "[{}/{}] seed {}: {:.0f} images/s, accuracy {:.2f}%; {}: {:.0f}, {:.2f}%\n", i + 1, repeats, r.seed,
                   own_rate(r), own_accuracy(r), r.peer.name, r.peer.images_per_s, peer_accuracy(r));
        runs.push_back(std::move(r));
    }
    if (json == "-")
        fmt::print("{}\n", to_json(runs, created).dump(1));
    else
        print_table(runs);
    if (!json.empty() && json != "-") write_json_file(json, to_json(runs, created));
    return 0;
}

}  // namespace muster
