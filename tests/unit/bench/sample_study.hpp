// A study with round numbers and its page, for the tests of tables and reports.
#pragma once

#include <string>

#include "bench/report/report_document.hpp"
#include "bench/report/report_page.hpp"
#include "bench/study/study.hpp"

namespace muster {

inline study_run sample_run(int ranks, int repetition, double train_s) {
    study_run run;
    run.ranks = ranks;
    run.repetition = repetition;
    run.started = "2026-01-31T12:00:00Z";
    run.wall_s = train_s + 1;
    run.hosts = {"node1"};
    run.load = {0.25, 2, 0.0, 0.0, {}};
    run.oversubscribed = ranks > 2;
    auto const tell = [&](char const* name, char const* unit, double value) { run.metrics.push_back({name, unit, 0, {value}}); };
    tell("train_s", "s", train_s);
    tell("images_per_s", "images/s", 59936 / (train_s - 0.0625));
    tell("accuracy", "", 0.75);
    tell("startup_s", "s", 0.5);
    tell("test_s", "s", 0.25);
    tell("first_step_s", "s", 0.0625);
    tell("allreduce_wait_s", "s", 0.125);
    tell("loader_wait_s", "s", 0.03125);
    tell("first_epoch_s", "s", train_s);
    tell("epoch_s", "s", train_s);
    tell("steps", "", 938.0 / ranks);
    tell("published_s", "s", train_s + 0.25);
    tell("published_with_startup_s", "s", train_s + 0.75);
    for (int r = 0; r < ranks; ++r) run.metrics.push_back({"compute_s", "s", r, {train_s - 0.15625}});
    return run;
}

/// 1, 2 and 4 ranks on 2 cores, three runs each: 8, 4.5 and 5 seconds in the middle.
inline study sample_study() {
    study s;
    s.created = "2026-01-31T12:00:00Z";
    s.command = "muster-bench scale --ranks 1,2,4";
    s.name = "mnist";
    s.version = "0.1.0";
    s.scheduler = "local";
    s.folder = "/work";
    s.load = {0.25, 2, 0.0, {}, {}};
    s.variables = {{"OMP_NUM_THREADS", "1"}};
    s.plan.program = {"python3", "published_table.py", "--net", "mnist"};
    s.plan.net = "mnist";
    s.plan.protocol = "fast";
    s.plan.ranks = {1, 2, 4};
    s.plan.repeats = 3;
    s.plan.judged = {"train_s", false};
    for (int const ranks : {1, 2, 4}) {
        study_point point{ranks, 1, {"node1"}, ranks > 2, "", {}};
        for (int r = 0; r < ranks; ++r) point.places.push_back({r, "node1", std::to_string(r % 2), ""});
        s.points.push_back(point);
    }
    s.launch_command = "muster run -n 1 -- python3 published_table.py --net mnist";
    s.machine = {"node1",
                 "Some Processor",
                 2,
                 2600,
                 "performance",
                 std::uint64_t{24} << 30,
                 "Debian GNU/Linux 12 (bookworm)",
                 "Linux 6.1.0 x86_64",
                 "GCC 12.2.0",
                 false,
                 "none"};
    int order = 0;
    for (int repetition = 0; repetition < 3; ++repetition) {
        double const off = repetition - 1;
        for (auto const& [ranks, seconds] : {std::pair{1, 8.0}, std::pair{2, 4.5}, std::pair{4, 5.0}}) {
            s.runs.push_back(sample_run(ranks, repetition, seconds + off * 0.5));
            s.runs.back().order = order++;
        }
    }
    return s;
}

/// A study of another program: `seconds[i]` are the repetitions of ranks[i].
inline study plain_study(std::vector<int> const& ranks, std::vector<std::vector<double>> const& seconds) {
    study s;
    s.name = "train.py";
    s.created = "2026-01-31T12:00:00Z";
    s.command = "muster-bench scale -- ./train.py";
    s.scheduler = "local";
    s.machine.cores = 8;
    s.plan.program = {"./train.py"};
    s.plan.ranks = ranks;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        int repetition = 0;
        for (double const value : seconds[i]) {
            study_run run;
            run.ranks = ranks[i];
            run.repetition = repetition++;
            run.order = static_cast<int>(s.runs.size());
            run.wall_s = value;
            run.output = "runs/0001.txt";
            s.runs.push_back(run);
        }
        s.plan.repeats = repetition;
    }
    return s;
}

inline std::string page_of(study const& s) {
    return report_html(gather_report({{{s, "study/results.json"}}}));
}

/// The words of a page.
inline std::string without_tags(std::string const& page) {
    std::string out;
    bool tag = false;
    for (char const c : page) {
        if (c == '<') tag = true;
        if (!tag) out += c;
        if (c == '>') tag = false;
    }
    return out;
}

}  // namespace muster
