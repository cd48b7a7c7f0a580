#include "bench/scaling/scale_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"
#include "base/process/self_program.hpp"
#include "base/text.hpp"
#include "bench/child.hpp"
#include "bench/scaling/report_command.hpp"
#include "bench/scaling/scaling_table.hpp"
#include "bench/scaling/study.hpp"
#include "bench/tools/checked_json.hpp"
#include "bench/tools/options.hpp"
#include "bench/tools/other_work.hpp"

namespace muster {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

constexpr char const* help = R"(muster-bench scale --data FILE.h5 [options]      train on several numbers of ranks and compare

  muster-bench scale --ranks 1,2,4 --data fashion-mnist.h5 -o scaling

  --data FILE.h5        as for muster-bench train
  --ranks LIST          numbers of ranks (1,2,4)
  --repeats N           runs of each, the numbers taking turns (3)
  --warmup N            runs of each before that are not counted (1)
  -o, --output DIR      where results.json, report.html and the runs' messages go (scaling)
  --muster PATH         the launcher (the muster beside this program)
  --no-html             no report.html, for which gnuplot is needed
  --epochs, --batch, --seed, --lr, --momentum, --dropout, --bucket-bytes, --protocol, --kernels
                        handed to muster-bench train
)";

constexpr char const* handed_on[]{"epochs", "batch", "seed", "lr", "momentum", "dropout", "bucket-bytes", "protocol", "kernels"};

struct plan {
    std::string muster, self, data;
    fs::path folder;
    std::vector<int> ranks;
    int repeats = 3, warmup = 1;
    std::vector<std::string> training;  // options for train
    bool html = true;
};

fs::path own_path() {
    std::error_code fault;
    auto const path = fs::read_symlink("/proc/self/exe", fault);
    if (fault) throw error(errc::system, "cannot read /proc/self/exe, by which this program starts itself again; mount /proc");
    return path;
}

plan read_plan(po::variables_map const& values) {
    plan p;
    p.data = required(values, "data", "--data fashion-mnist.h5");
    if (std::error_code fault; !fs::exists(p.data, fault))
        throw error(errc::not_found, fmt::format("--data: no file '{}'; make one with muster-stage convert", p.data));
    p.data = fs::absolute(p.data).string();
    p.ranks = parse_list(values["ranks"].as<std::string>(), "--ranks", 1, 4096);
    p.repeats = values["repeats"].as<int>();
    p.warmup = values["warmup"].as<int>();
    if (p.repeats < 1 || p.repeats > 1000)
        throw error(errc::usage, fmt::format("--repeats is {}, expected 1 to 1000", p.repeats));
    if (p.warmup < 0 || p.warmup > 1000) throw error(errc::usage, fmt::format("--warmup is {}, expected 0 to 1000", p.warmup));
    auto sorted = p.ranks;
    std::sort(sorted.begin(), sorted.end());
    if (auto const twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
        throw error(errc::usage, fmt::format("--ranks names {} twice; use --repeats for more runs", *twice));
    auto const self = self_program();
    p.self = self.string();
    p.muster = values["muster"].as<std::string>();
    if (p.muster.empty()) p.muster = (self.parent_path() / "muster").string();
    if (::access(p.muster.c_str(), X_OK) != 0)
        throw error(errc::not_found, fmt::format("no launcher at '{}'; give --muster PATH", p.muster));
    p.folder = values["output"].as<std::string>();
    std::error_code ignored;
    fs::create_directories(p.folder, ignored);
    if (!fs::is_directory(p.folder, ignored))
        throw error(errc::io, fmt::format("cannot write into '{}': it is no folder and cannot be made; give another with -o",
                                          p.folder.string()));
    for (auto const* name : handed_on)
        if (values.count(name) != 0)
            p.training.insert(p.training.end(), {fmt::format("--{}", name), values[name].as<std::string>()});
    p.html = !values["no-html"].as<bool>();
    return p;
}

std::vector<std::string> launch_command(plan const& p, int ranks, std::string const& json) {
    // --slots-per-node, since neither the number of cores nor that of GPUs is to limit the ranks.
    auto const number = std::to_string(ranks);
    std::vector<std::string> command{p.muster, "run", "-q", "-n", number, "--slots-per-node", number};
    command.insert(command.end(), {"--", p.self, "train", "--data", p.data, "--json", json});
    command.insert(command.end(), p.training.begin(), p.training.end());
    return command;
}

std::string last_lines(fs::path const& file) {
    std::ifstream from(file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(from, line);) lines.push_back(line);
    std::string out;
    for (std::size_t i = lines.size() > 12 ? lines.size() - 12 : 0; i < lines.size(); ++i) out += "\n  " + lines[i];
    return out;
}

// One launch; its messages go to a file, so that they neither mix with the progress nor are lost.
study_run run_once(plan const& p, int ranks, int cores, environment const& variables) {
    auto const json = (p.folder / "run.json").string(), messages = (p.folder / fmt::format("run.{}.messages", ranks)).string();
    std::error_code ignored;
    fs::remove(json, ignored);
    study_run run;
    run.ranks = ranks;
    run.started = utc_now();
    run.load_before = load_average();
    run.oversubscribed = ranks > cores;
    child_options options;
    options.capture_output = true;  // the text for people, which the record holds too
    options.error_file = messages;
    auto const command = launch_command(p, ranks, json);
    auto const result = run_child(command, variables, options);
    if (result.exit_code != 0)
        throw error(errc::peer_failed, fmt::format("{} ended with exit code {}; the end of its messages in {}:{}",
                                                   shell_join(command), result.exit_code, messages, last_lines(messages)));
    run.wall_s = result.wall_s;
    auto const document = read_json_file(json);
    run.train = read_train_record(checked_json(document, json));
    fs::remove(json, ignored);
    return run;
}

}  // namespace

int scale_command(std::vector<std::string> const& args, environment const& variables) {
    po::options_description known;
    auto const text = [](char const* fallback) { return po::value<std::string>()->default_value(fallback); };
    known.add_options()("help,h", po::bool_switch())("data", po::value<std::string>())("ranks", text("1,2,4"))(
        "repeats", po::value<int>()->default_value(3))("warmup", po::value<int>()->default_value(1))("output,o", text("scaling"))(
        "muster", text(""))("no-html", po::bool_switch());
    for (auto const* name : handed_on) known.add_options()(name, po::value<std::string>());
    auto const values = read_options(args, known);
    if (values["help"].as<bool>()) {
        fmt::print("{}", help);
        return 0;
    }
    auto const p = read_plan(values);

    study results;
    results.created = utc_now();
    results.command = "muster-bench scale " + shell_join(args);
    results.machine = describe_machine();
    int const cores = results.machine.cores;
    other_work const others;
    results.launch_command = shell_join(launch_command(p, p.ranks.front(), "FILE"));
    for (int i = 0; i < p.warmup; ++i)
        for (int const ranks : p.ranks) run_once(p, ranks, cores, variables);
    auto const total = static_cast<std::size_t>(p.repeats) * p.ranks.size();
    for (int repetition = 0; repetition < p.repeats; ++repetition) {
        for (int const ranks : p.ranks) {
            auto run = run_once(p, ranks, cores, variables);
            run.repetition = repetition;
            run.order = static_cast<int>(results.runs.size());
            auto const& last = run.train.epochs_done.back();
            fmt::print(stderr, "[{}/{}] {} rank{}: trained in {:.3f} s, {:.0f} images/s, accuracy {:.2f}%\n", run.order + 1,
                       total, ranks, ranks == 1 ? "" : "s", run.train.train_s(), last.images_per_s, 100 * last.accuracy());
            results.runs.push_back(std::move(run));
            write_json_file((p.folder / "results.json").string(),
                            to_json(results));  // after every run: an interrupted study keeps what it has
        }
    }
    fmt::print("{}{}", scaling_text(results), others.note());
    std::fflush(stdout);
    fmt::print(stderr, "wrote {}\n", (p.folder / "results.json").string());
    if (p.html) fmt::print(stderr, "wrote {}\n", write_html_report(results, p.folder.string(), variables));
    return 0;
}

}  // namespace muster
