#include "bench/scaling/scale_command.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"
#include "base/process/run_captured.hpp"
#include "base/process/self_program.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "bench/scaling/report_command.hpp"
#include "bench/scaling/scaling_table.hpp"
#include "bench/scaling/study.hpp"
#include "bench/tools/checked_json.hpp"
#include "bench/tools/options.hpp"
#include "bench/tools/other_work.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr option_row scale_options[]{
    {"data", 0, "FILE.h5", "as for muster-bench train", ""},
    {"ranks", 0, "LIST", "numbers of ranks", "1,2,4"},
    {"repeats", 0, "N", "runs of each, the numbers of ranks taking turns", "3"},
    {"warmup", 0, "N", "runs of each before that are not counted", "1"},
    {"output", 'o', "DIR", "where results.json, report.html and the runs' messages go", "scaling"},
    {"muster", 0, "PATH", "the launcher; default: the muster beside this program", ""},
    {"no-html", 0, "", "no report.html, for which gnuplot is needed", ""},
    {"epochs", 0, "N", "these and the following are handed to muster-bench train", ""},
    {"batch", 0, "N", "images a rank and step", ""},
    {"seed", 0, "N", "seed of the weights, the order of the images and dropout", ""},
    {"lr", 0, "X", "learning rate of one rank", ""},
    {"momentum", 0, "X", "momentum", ""},
    {"dropout", 0, "X", "probability of both dropouts", ""},
    {"bucket-bytes", 0, "SIZE", "gradients are reduced in pieces of about this size", ""},
    {"protocol", 0, "NAME", "fast or published", ""},
    {"kernels", 0, "NAME", "auto, avx512, avx2 or baseline", ""},
};

constexpr char const* handed_on[]{"epochs", "batch", "seed", "lr", "momentum", "dropout", "bucket-bytes", "protocol", "kernels"};

struct plan {
    std::string muster, self, data;
    fs::path folder;
    std::vector<int> ranks;
    int repeats = 3, warmup = 1;
    std::vector<std::string> training;  // options for train
    bool html = true;
};

plan read_plan(given_options const& given) {
    plan p;
    p.data = given.needed("data");
    if (std::error_code fault; !fs::exists(p.data, fault))
        throw error(errc::not_found, fmt::format("--data: no file '{}'; make one with muster-stage convert", p.data));
    p.data = fs::absolute(p.data).string();
    p.ranks = parse_list(given.text("ranks"), "--ranks", 1, 4096);
    p.repeats = static_cast<int>(given.integer("repeats", 1, 1000));
    p.warmup = static_cast<int>(given.integer("warmup", 0, 1000));
    auto sorted = p.ranks;
    std::sort(sorted.begin(), sorted.end());
    if (auto const twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
        throw error(errc::usage, fmt::format("--ranks names {} twice; use --repeats for more runs", *twice));
    p.self = self_program().string();
    p.muster = launcher_of(given);
    p.folder = given.text("output");
    std::error_code ignored;
    fs::create_directories(p.folder, ignored);
    if (!fs::is_directory(p.folder, ignored))
        throw error(errc::io, fmt::format("cannot write into '{}': it is no folder and cannot be made; give another with -o",
                                          p.folder.string()));
    for (auto const* name : handed_on)
        if (given.has(name)) p.training.insert(p.training.end(), {fmt::format("--{}", name), given.text(name)});
    p.html = !given.has("no-html");
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
    unique_fd const file(::open(messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file) throw_system("open", messages);
    auto how = foreground();  // standard output has the text for people, which the record holds too
    how.err_fd = file.get();
    auto const command = launch_command(p, ranks, json);
    auto const result = run_program(command, variables, how);
    if (result.exit_status != 0)
        throw error(errc::peer_failed, fmt::format("{} ended with exit code {}; the end of its messages in {}:{}",
                                                   shell_join(command), result.exit_status, messages, last_lines(messages)));
    run.wall_s = result.wall.count();
    auto const document = read_json_file(json);
    run.train = read_train_record(checked_json(document, json));
    fs::remove(json, ignored);
    return run;
}

}  // namespace

constexpr command_row scale_row{
    .name = "scale",
    .summary = "train on several numbers of ranks: table, results, report",
    .synopsis = "--data FILE.h5 [options]",
    .examples = "  muster-bench scale --ranks 1,2,4 --data fashion-mnist.h5 -o scaling\n",
    .options = scale_options,
};

int scale_command(given_options const& given, environment const& variables, std::string const& line) {
    auto const p = read_plan(given);

    study results;
    results.created = utc_now();
    results.command = line;
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
