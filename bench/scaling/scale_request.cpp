#include "bench/scaling/scale_request.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/units.hpp"
#include "base/version.hpp"
#include "bench/scaling/net_request.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/placeholders.hpp"
#include "bench/study/program_software.hpp"
#include "bench/study/study_journal.hpp"
#include "bench/tools/machine.hpp"
#include "bench/tools/options.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr option_row scale_options[]{
    {"ranks", 'n', "LIST", "numbers of ranks", "1,2,4"},
    {"repeats", 0, "N", "runs of each, the numbers of ranks taking turns; six give an interval", "6"},
    {"warmup", 0, "N", "runs of each before that are not counted", "1"},
    {"output", 'o', "DIR", "where results, report and all that is printed go; a study that is there goes on", "scaling"},
    {"strong", 0, "", "the work is the same for all: {batch} is --batch / ranks; of a --net: --protocol strong", ""},
    {"weak", 0, "", "the work grows with the ranks: {batch} is --batch; of a --net: --protocol weak", ""},
    {"batch", 0, "N", "what {batch} stands for; of a --net: images a rank and step, of all ranks with --strong", ""},
    {"metric", 0, "NAME=REGEX", "read NAME from what is printed; NAME:UNIT=REGEX; may be given again", "", true},
    {"metric-file", 0, "PATH", "read metrics from this file of JSON lines", ""},
    {"take", 0, "NAME=WHICH", "last, first, mean, median, min, max or sum of its values; ,ACROSS the ranks likewise", "", true},
    {"time-metric", 0, "NAME", "judge by this time instead of wall_s", ""},
    {"rate-metric", 0, "NAME", "judge by this rate, of which more is better", ""},
    {"expect", 0, "BOUND", "'speedup[4]>=3.5': exit code 1 where it is broken; may be given again", "", true},
    {"baseline", 0, "FILE", "an earlier results.json: exit code 1 where this study is worse", ""},
    {"tolerance", 0, "X%", "worse by no more than this is as good as the baseline", "5%"},
    {"strict", 0, "", "refuse to run while other programs use more than a tenth of the CPUs", ""},
    {"timeout", 0, "T", "end a run after T (90, 90s, 5min, 1:30:00)", ""},
    {"shuffle", 0, "SEED", "draw the order of the numbers of ranks anew in each repetition", ""},
    {"run-options", 0, "WORDS", "more options of muster run, quoted as for a shell: '-H a:4,b:4 --bind-to core'", ""},
    {"submit", 0, "", "one batch job for each number of ranks; the same command collects them and goes on", ""},
    {"submit-options", 0, "WORDS", "of muster submit: '--site polaris --queue debug --account A --time 30min'", ""},
    {"wait", 0, "", "with --submit: stay until the jobs have ended", ""},
    {"collect", 0, "", "with --submit: submit none, show what the jobs have brought by now", ""},
    {"dry-run", 0, "", "with --submit: print what would be submitted", ""},
    {"only", 0, "LIST", "make the runs of these of the --ranks alone, and no page, as a job of --submit does", ""},
    {"fresh", 0, "", "begin anew in a folder that holds a study", ""},
    {"retry", 0, "", "make runs that failed again", ""},
    {"name", 0, "NAME", "what the study is called; default: the program, or the script of an interpreter", ""},
    {"muster", 0, "PATH", "the launcher; default: muster in this program's folder", ""},
    {"net", 0, "NAME",
     "without a program: mnist or cifar10 by PyTorch; resnet50 or gpt2-small: steps of timed compute (of other lengths by -- "
     "muster-bench steps)",
     "mnist", false, "mnist cifar10 resnet50 gpt2-small"},
    {"data", 0, "FILE.h5", "of mnist and cifar10, made by muster stage convert; without: generated images", ""},
    {"images", 0, "TRAIN,TEST", "how many images are generated, or taken of --data", ""},
    {"protocol", 0, "NAME", "of a --net: fast, published, steady, strong, weak or accuracy", "fast", false,
     "fast published steady strong weak accuracy"},
    {"target-accuracy", 0, "X%", "of --protocol accuracy: the test accuracy that ends a run; default: 97%", ""},
    {"epochs", 0, "N", "passes over the training images; fewer than the protocol's shorten it", ""},
    {"lr", 0, "X", "learning rate of one rank", ""},
    {"api", 0, "NAME", "hvd (muster.torch) or ddp (DistributedDataParallel)", "", false, "hvd ddp"},
    {"backend", 0, "NAME", "of --api ddp: muster, gloo or nccl", "", false, "muster gloo nccl"},
    {"device", 0, "NAME", "auto (a GPU where PyTorch sees one), cpu or cuda", "", false, "auto cpu cuda"},
    {"python", 0, "PATH", "the interpreter; default: python3, or /usr/bin/python3 where that alone has PyTorch", ""},
};

[[noreturn]] void refuse(std::string const& what) {
    throw error(errc::usage, what);
}

void read_batch(given_options const& given, study_plan& plan) {
    if (!given.has("batch")) return;
    plan.batch = given.integer("batch", 1, 1'000'000'000'000);
    if (plan.series == work_series::as_given)
        refuse("--batch says nothing without a series; give --strong (of all ranks) or --weak (of each)");
    if (plan.series == work_series::strong) require_divided(*plan.batch, plan.ranks);
}

void read_program(given_options const& given, study_plan& plan) {
    plan.program = given.program();
    for (auto const* name : net_option_names())
        if (given.has(name))
            refuse(
                fmt::format("--{} is for a --net of muster-bench; hand it to the program behind --, or name no program", name));
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
    // Unknown names are reported before the first run.
    run_numbers const tried{1, 1, 1, plan.batch};
    auto const filled = fill_placeholders(plan.program, tried);
    fill_placeholders(plan.metric_file, tried);
    if (plan.batch && filled == fill_placeholders(plan.program, {1, 1, 1, *plan.batch + 1}))
        refuse(fmt::format(
            "--batch {}: the program has no argument with {{batch}}, so it would never see it; write {{batch}} where it "
            "takes its batch ('-- {} --batch {{batch}}'), or leave --batch out",
            *plan.batch, shell_join(plan.program)));
}

/// Refuses placeholders where they would not be filled in.
void refuse_placeholders_elsewhere(given_options const& given) {
    for (auto const* option : {"run-options", "submit-options", "output", "name"})
        for (auto const* name : {"{ranks}", "{nodes}", "{repeat}", "{batch}"})
            if (auto const text = given.text(option); text.find(name) != text.npos)
                refuse(fmt::format(
                    "--{} {}: {} is filled in the program's arguments and --metric-file alone; to give it as a variable, "
                    "write '-- env NAME={} PROGRAM …'",
                    option, shell_quote(text), name, name));
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
    for (auto const* name : {"only", "shuffle"})
        if (given.has(name))
            refuse(fmt::format("--{} does not go with --submit; leave it out, or start the study inside of a job", name));
    out.submit.wait = given.has("wait");
    out.submit.collect_only = given.has("collect");
    out.submit.dry_run = given.has("dry-run");
    if (out.submit.collect_only && given.has("retry"))
        refuse("--retry submits jobs again, and --collect submits none; leave out one of them");
    for (auto const& word : out.plan.launch)
        if (word == "-H" || word == "-f" || word.starts_with("--host"))
            refuse(fmt::format("--run-options {} does not go with --submit: each job has hosts of its own", word));
    if (given.has("submit-options")) out.submit.options = shell_split(given.text("submit-options"), "--submit-options");
}

fs::path made_folder(std::string const& name) {
    std::error_code ignored;
    fs::create_directories(fs::path(name) / "runs", ignored);
    if (!fs::is_directory(fs::path(name) / "runs", ignored))
        throw_error(errc::io, "cannot write into '{}': it is no folder and cannot be made; give another with -o", name);
    return name;
}

void check_expected_ranks(study_demands const& demands, study_plan const& plan) {
    for (auto const& wanted : demands.expectations)
        if (wanted.ranks && std::find(plan.ranks.begin(), plan.ranks.end(), *wanted.ranks) == plan.ranks.end())
            refuse(fmt::format("--expect {}: no runs of {} are made; add it to --ranks", wanted.text, ranks_text(*wanted.ranks)));
}

}  // namespace

std::span<option_row const> scale_option_rows() noexcept {
    return scale_options;
}

scale_request read_scale_request(given_options const& given, environment const& variables) {
    scale_request out;
    auto& plan = out.plan;
    refuse_placeholders_elsewhere(given);
    plan.ranks = read_ranks(given);
    plan.repeats = static_cast<int>(given.integer("repeats", 1, most_repeats));
    plan.warmup = static_cast<int>(given.integer("warmup", 0, 1000));
    if (given.program().empty())
        read_net_request(given, variables, given.text("output"), !given.has("submit"), plan);
    else
        read_program(given, plan);
    if (given.has("shuffle")) plan.shuffle = given.integer("shuffle", 0, INT64_MAX);
    if (given.has("timeout")) plan.timeout_s = parse_duration(given.text("timeout"), "--timeout").count();
    for (auto const& text : given.all("take")) plan.choices.push_back(parse_metric_choice(text));
    if (given.has("run-options")) plan.launch = shell_split(given.text("run-options"), "--run-options");
    read_submit(given, out);
    out.demands = read_study_demands(given);
    check_expected_ranks(out.demands, plan);
    out.name = given.has("name") ? given.text("name") : plan.has_net() ? net_name(plan) : program_name(plan.program);
    out.muster = launcher_of(given);
    out.folder = made_folder(given.text("output"));
    out.fresh = given.has("fresh");
    auto const begun = out.fresh ? std::nullopt : read_journal(out.folder.string());
    if (!begun || begun->plan.has_net())
        write_net_program(plan);  // last: a refused request leaves the folder of your program as it is
    out.strict = given.has("strict");
    out.retry = given.has("retry");
    return out;
}

study study_of(scale_request const& request, std::string const& line) {
    study out;
    out.name = request.name;
    out.created = utc_now();
    out.command = line;
    out.version = version();
    out.folder = fs::current_path().string();
    out.machine = describe_machine();
    out.plan = request.plan;
    return out;
}

}  // namespace muster
