#include "bench/scaling/scale_request.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/error.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "bench/peers/peer.hpp"
#include "bench/scaling/training_request.hpp"
#include "bench/study/placeholders.hpp"
#include "bench/tools/options.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr option_row scale_options[]{
    {"ranks", 'n', "LIST", "numbers of ranks", "1,2,4"},
    {"repeats", 0, "N", "runs of each, the numbers of ranks taking turns; six give an interval", "6"},
    {"warmup", 0, "N", "runs of each before that are not counted", "1"},
    {"output", 'o', "DIR", "where results, report and all that is printed go; a study that is there goes on", "scaling"},
    {"strong", 0, "", "the work is the same for all: {batch} is --batch / ranks; without a program: --protocol strong", ""},
    {"weak", 0, "", "the work grows with the ranks: {batch} is --batch; without a program: --protocol weak", ""},
    {"batch", 0, "N", "what {batch} stands for; without a program: images a rank and step, of all ranks with --strong", ""},
    {"metric", 0, "NAME=REGEX", "read NAME from what is printed; NAME:UNIT=REGEX; may be given again", "", true},
    {"metric-file", 0, "PATH", "read metrics from this file of JSON lines", ""},
    {"take", 0, "NAME=WHICH", "last, first, mean, median, min, max or sum of its values; ,ACROSS the ranks likewise", "", true},
    {"time-metric", 0, "NAME", "judge by this time instead of wall_s", ""},
    {"rate-metric", 0, "NAME", "judge by this rate, of which more is better", ""},
    {"expect", 0, "BOUND", "'speedup[4]>=3.5': exit code 1 where it is broken; may be given again", "", true},
    {"baseline", 0, "FILE", "an earlier results.json: exit code 1 where this study is worse", ""},
    {"tolerance", 0, "X%", "worse by no more than this is as good as the baseline", "5%"},
    {"collectives", 0, "FILE", "--json of collectives: waiting for gradients is held against its allreduces", ""},
    {"strict", 0, "", "refuse to run while other programs use more than a tenth of the CPUs", ""},
    {"timeout", 0, "T", "end a run after T (90, 90s, 5min, 1:30:00)", ""},
    {"shuffle", 0, "SEED", "draw the order of the numbers of ranks anew in each repetition", ""},
    {"hosts", 'H', "a:4,b:4", "handed to muster run, as are the next two", ""},
    {"hostfile", 'f', "FILE", "file of hosts", ""},
    {"run-options", 0, "WORDS", "more options of muster run, quoted as for a shell: '--bind-to core'", ""},
    {"submit", 0, "", "one batch job for each number of ranks; the same command collects them and goes on", ""},
    {"submit-options", 0, "WORDS", "of muster submit: '--site polaris --queue debug --account A --time 30min'", ""},
    {"wait", 0, "", "with --submit: stay until the jobs have ended", ""},
    {"collect", 0, "", "with --submit: submit none, show what the jobs have brought by now", ""},
    {"dry-run", 0, "", "with --submit: print what would be submitted", ""},
    {"only", 0, "LIST", "make the runs of these of the --ranks alone, as a job of --submit does", ""},
    {"fresh", 0, "", "begin anew in a folder that holds a study", ""},
    {"retry", 0, "", "make runs that failed again", ""},
    {"what-if", 0, "", "try the advice on what is found: runs with and without it take turns, as many rounds as --repeats", ""},
    {"name", 0, "NAME", "what the study is called; default: the program, or the script of an interpreter", ""},
    {"muster", 0, "PATH", "the launcher; default: the muster beside this program", ""},
    {"no-html", 0, "", "no report.html", ""},
    {"as-published", 0, "", "--data by PyTorch with the published table's loader and binding (to a core for 1 and 2 ranks)", ""},
    {"loader", 0, "NAME", "with --as-published: published, or fast: whole batches out of memory, no worker", ""},
    {"cores", 0, "WHOSE", "with --as-published: published, or own: a rank and its loader's worker never share one", ""},
    {"gpu-ms", 0, "X", "with --as-published: imitate GPUs: a step takes X ms, waited for by spinning", ""},
    {"core-share", 0, "X", "emulate cores by quotas of this share of one, in a cgroup: 0.25 makes 8 of 2", ""},
    {"protocol", 0, "NAME", "without a program: fast, published, steady, strong, weak or accuracy", "fast"},
    {"target-accuracy", 0, "X%", "of --protocol accuracy: the test accuracy that ends a run; default: 97%", ""},
    {"data", 0, "FILE.h5|DIR", "without a program: the built-in training on these images, as muster-bench train", ""},
    {"net", 0, "NAME", "these and the following are handed to muster-bench train", ""},
    {"images", 0, "TRAIN,TEST", "how many images are generated, without --data", ""},
    {"steps", 0, "N", "of timed compute: steps of an epoch", ""},
    {"compute-ms", 0, "X", "of timed compute: a step without communication", ""},
    {"compute-by", 0, "HOW", "of timed compute: burn or wait", ""},
    {"epochs", 0, "N", "passes over the training images; fewer than the protocol's shorten it", ""},
    {"seed", 0, "N", "seed of the weights, the order of the images and dropout", ""},
    {"lr", 0, "X", "learning rate of one rank", ""},
    {"momentum", 0, "X", "momentum", ""},
    {"dropout", 0, "X", "probability of both dropouts", ""},
    {"bucket-bytes", 0, "SIZE", "gradients are reduced in pieces of about this size", ""},
    {"kernels", 0, "NAME", "auto, avx512, avx2 or baseline", ""},
    {"device", 0, "NAME", "cpu, cuda or auto", ""},
    {"graph", 0, "HOW", "of a GPU's step: step, parts or off", ""},
    {"gpu-backend", 0, "NAME", "of a GPU's allreduces with --graph parts or off: nccl or nccl_mpi", ""},
};

[[noreturn]] void refuse(std::string const& what) {
    throw error(errc::usage, what);
}

/// Runs what follows with a quota of processor time. Its group goes when it has ended.
constexpr char const* in_share =
    "g=/sys/fs/cgroup/cpu/muster-share-$$; mkdir $g && echo 20000 >$g/cpu.cfs_period_us && echo $0 >$g/cpu.cfs_quota_us && "
    "echo $$ >$g/cgroup.procs || exit 125; \"$@\"; c=$?; echo $$ >/sys/fs/cgroup/cpu/cgroup.procs; rmdir $g; exit $c";

void read_core_share(given_options const& given, study_plan& plan) {
    if (!given.has("core-share")) return;
    plan.core_share = given.real("core-share");
    if (!(plan.core_share > 0 && plan.core_share <= 1))
        refuse(fmt::format("--core-share {}: expected more than 0, at most 1", given.text("core-share")));
    if (::access("/sys/fs/cgroup/cpu", W_OK) != 0)
        throw error(errc::unavailable, "--core-share: /sys/fs/cgroup/cpu cannot be written; it needs cgroup v1 and root");
    if (!plan.as_published)
        plan.program.insert(plan.program.begin(), {"sh", "-c", in_share, std::to_string(std::lround(20000 * plan.core_share))});
}

/// The published table's run in PyTorch, whose script is a file of this program's.
void read_as_published(given_options const& given, study_plan& plan, fs::path const& folder) {
    if (!given.has("data")) refuse("--as-published: --data is missing; give --data FILE.h5");
    auto const script = fs::absolute(folder / "published_mnist.py");
    std::ofstream(script) << find_text(peer_files(), "published_mnist.py");
    plan.as_published = true;
    if (given.has("loader") && given.text("loader") != "published" && given.text("loader") != "fast")
        refuse(fmt::format("--loader {}: give published or fast", given.text("loader")));
    if (given.has("cores") && given.text("cores") != "published" && given.text("cores") != "own")
        refuse(fmt::format("--cores {}: give published or own", given.text("cores")));
    if (given.has("cores") && !given.has("core-share")) refuse("--cores is for imitated cores; give --core-share too");
    plan.judged = {"train_s", false};
    if (given.has("gpu-ms")) {
        if (!(given.real("gpu-ms") > 0)) refuse(fmt::format("--gpu-ms {}: expected more than 0", given.text("gpu-ms")));
        plan.judged = {"images_per_s", true};
        plan.notes.push_back(
            fmt::format("real processes, and no GPU: a step ends {} ms after the last rank has begun it, and ranks "
                        "wait for that by spinning; nothing is trained",
                        given.text("gpu-ms")));
    }
    plan.program = {"/usr/bin/python3", script.string(), "--data", fs::absolute(given.text("data")).string()};
    for (auto const* name : {"epochs", "batch", "seed", "lr", "momentum", "loader", "core-share", "cores", "gpu-ms"})
        if (given.has(name)) plan.program.insert(plan.program.end(), {fmt::format("--{}", name), given.text(name)});
    if (given.has("images")) {
        auto const images = given.text("images");  // TRAIN,TEST; nothing is tested
        plan.program.insert(plan.program.end(), {"--images", images.substr(0, images.find(','))});
    }
}

void read_batch(given_options const& given, study_plan& plan) {
    if (!given.has("batch")) return;
    plan.batch = given.integer("batch", 1, 1'000'000'000'000);
    if (plan.series == work_series::as_given)
        refuse("--batch says nothing without a series; give --strong (of all ranks) or --weak (of each)");
    if (plan.series != work_series::strong) return;
    for (int const ranks : plan.ranks)
        if (*plan.batch % ranks != 0)
            refuse(fmt::format("--batch: {} does not divide among {} ranks; give a multiple of every number of ranks",
                               *plan.batch, ranks));
}

void read_program(given_options const& given, study_plan& plan) {
    plan.program = given.program();
    for (auto const* name : {"as-published", "loader", "cores", "gpu-ms"})
        if (given.has(name)) refuse(fmt::format("--{} names the program itself; leave out the one behind --", name));
    for (auto const* name : training_option_names())
        if (given.has(name))
            refuse(fmt::format("--{} is for the built-in training; hand it to the program behind --, or name no program", name));
    if (given.has("strong") && given.has("weak")) refuse("--strong and --weak exclude each other; give one");
    if (given.has("strong")) plan.series = work_series::strong;
    if (given.has("weak")) plan.series = work_series::weak;
    read_batch(given, plan);
    for (auto const& text : given.all("metric")) plan.patterns.push_back(parse_metric_pattern(text));
    if (given.has("metric-file")) plan.metric_file = given.text("metric-file");
    if (given.has("time-metric") && given.has("rate-metric"))
        refuse("--time-metric and --rate-metric exclude each other; give one");
    if (given.has("time-metric")) plan.judged = {given.text("time-metric"), false};
    if (given.has("rate-metric")) plan.judged = {given.text("rate-metric"), true};
    // Names that are not there are told before the first run.
    run_numbers const tried{1, 1, 1, plan.batch};
    fill_placeholders(plan.program, tried);
    fill_placeholders(plan.metric_file, tried);
}

/// The program's file name; of an interpreter's first argument that is no option, "train.py" of "python3 -u train.py".
std::string name_of(std::vector<std::string> const& program) {
    constexpr std::string_view interpreters[]{"python", "bash", "sh", "perl", "julia", "Rscript"};
    auto name = fs::path(program.front()).filename().string();
    auto const interprets = [&](std::string_view one) { return name.starts_with(one); };
    if (std::none_of(std::begin(interpreters), std::end(interpreters), interprets)) return name;
    auto const script =
        std::find_if(program.begin() + 1, program.end(), [](auto const& word) { return !word.empty() && word.front() != '-'; });
    return script == program.end() ? name : fs::path(*script).filename().string();
}

std::vector<std::string> read_launch(given_options const& given) {
    std::vector<std::string> out;
    for (auto const* name : {"hosts", "hostfile"})
        if (given.has(name)) out.insert(out.end(), {fmt::format("--{}", name), given.text(name)});
    if (given.has("run-options"))
        for (auto const& word : shell_split(given.text("run-options"), "--run-options")) out.push_back(word);
    return out;
}

std::vector<int> read_ranks(given_options const& given) {
    auto ranks = parse_list(given.text("ranks"), "--ranks", 1, given.program().empty() ? 4096 : 1'000'000);
    auto sorted = ranks;
    std::sort(sorted.begin(), sorted.end());
    if (auto const twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
        refuse(fmt::format("--ranks names {} twice; use --repeats for more runs", *twice));
    return ranks;
}

void read_submit(given_options const& given, scale_request& out) {
    out.submit.wanted = given.has("submit");
    for (auto const* name : {"submit-options", "wait", "collect", "dry-run"})
        if (given.has(name) && !out.submit.wanted) refuse(fmt::format("--{} is for jobs; give --submit too", name));
    if (given.has("only")) {
        out.only = parse_list(given.text("only"), "--only", 1, 1'000'000);
        for (int const ranks : out.only)
            if (std::ranges::find(out.plan.ranks, ranks) == out.plan.ranks.end())
                refuse(fmt::format("--only {}: it is none of --ranks; add it there", ranks));
    }
    if (!out.submit.wanted) return;
    for (auto const* name : {"hosts", "hostfile", "what-if", "as-published", "core-share", "only"})
        if (given.has(name))
            refuse(fmt::format("--{} does not go with --submit; leave it out, or start the study inside of a job", name));
    out.submit.wait = given.has("wait");
    out.submit.collect_only = given.has("collect");
    out.submit.dry_run = given.has("dry-run");
    if (given.has("submit-options")) out.submit.options = shell_split(given.text("submit-options"), "--submit-options");
}

fs::path made_folder(std::string const& name) {
    std::error_code ignored;
    fs::create_directories(fs::path(name) / "runs", ignored);
    if (!fs::is_directory(fs::path(name) / "runs", ignored))
        throw error(errc::io,
                    fmt::format("cannot write into '{}': it is no folder and cannot be made; give another with -o", name));
    return name;
}

void check_expected_ranks(study_demands const& demands, study_plan const& plan) {
    for (auto const& wanted : demands.expectations)
        if (wanted.ranks && std::find(plan.ranks.begin(), plan.ranks.end(), *wanted.ranks) == plan.ranks.end())
            refuse(fmt::format("--expect {}: no runs of {} ranks are made; add it to --ranks", wanted.text, *wanted.ranks));
}

}  // namespace

std::span<option_row const> scale_option_rows() noexcept {
    return scale_options;
}

scale_request read_scale_request(given_options const& given) {
    scale_request out;
    auto& plan = out.plan;
    plan.ranks = read_ranks(given);
    plan.repeats = static_cast<int>(given.integer("repeats", 1, 1000));
    plan.warmup = static_cast<int>(given.integer("warmup", 0, 1000));
    if (given.has("as-published") && given.program().empty())
        read_as_published(given, plan, made_folder(given.text("output")));
    else if (given.program().empty())
        read_training_request(given, plan);
    else
        read_program(given, plan);
    read_core_share(given, plan);
    if (given.has("shuffle")) plan.shuffle = given.integer("shuffle", 0, INT64_MAX);
    if (given.has("timeout")) plan.timeout_s = parse_duration(given.text("timeout"), "--timeout").count();
    for (auto const& text : given.all("take")) plan.choices.push_back(parse_metric_choice(text));
    plan.launch = read_launch(given);
    read_submit(given, out);
    out.demands = read_study_demands(given);
    check_expected_ranks(out.demands, plan);
    out.name = given.has("name") ? given.text("name")
               : plan.as_published
                   ? given.has("cores") && given.text("cores") == "own" ? "the published run, a core each" : "the published run"
               : plan.built_in ? training_name(given, plan)
                               : name_of(plan.program);
    out.muster = launcher_of(given);
    out.folder = made_folder(given.text("output"));
    if (given.has("collectives")) out.collectives = given.text("collectives");
    out.strict = given.has("strict");
    out.fresh = given.has("fresh");
    out.retry = given.has("retry");
    out.html = !given.has("no-html");
    out.what_if = given.has("what-if");
    return out;
}

}  // namespace muster
