#include "bench/scaling/try_advice.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/scaling/plan_point.hpp"
#include "bench/study/scaling_table.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr char const* schema = "muster.what-if/1";

fs::path file_in(fs::path const& folder) {
    return folder / "what-if.json";
}

void keep(fs::path const& folder, std::vector<tried_advice> const& all) {
    auto list = nlohmann::json::array();
    for (auto const& each : all) list.push_back(to_json(each));
    write_json_file(file_in(folder).string(), {{"schema", schema}, {"tried", list}});
}

bool same_change(tried_advice const& a, tried_advice const& b) {
    return a.cause == b.cause && a.ranks == b.ranks && a.change == b.change && a.launch == b.launch && a.program == b.program &&
           a.settings == b.settings && a.metric == b.metric && a.not_tried.empty() == b.not_tried.empty();
}

bool is_due(tried_advice const& each, int ranks, int rounds) {
    return each.not_tried.empty() && each.ranks == ranks && static_cast<int>(each.before.size()) + each.failed < rounds;
}

/// One run as the plan has it, or changed.
class variant {
  public:
    variant(run_setting const& setting, int ranks, tried_advice const* change)
        : plan_(setting.plan), variables_(setting.variables), setting_(setting), ranks_(ranks) {
        if (change == nullptr) return;
        plan_.launch = change->launch;
        plan_.program = change->program;
        for (auto const& word : change->settings) {
            auto const equals = word.find('=');
            variables_.set(word.substr(0, equals), word.substr(equals + 1));
        }
    }

    study_run run(int order) {
        run_setting here{setting_.muster, setting_.folder, plan_, variables_, setting_.signals, setting_.local, "what-if-"};
        if (!point_) point_ = plan_point(setting_.muster, plan_, ranks_, variables_).point;
        crowd_watch crowd;
        return run_point(here, {ranks_, order, false}, *point_, order, crowd);
    }

  private:
    study_plan plan_;
    environment variables_;
    run_setting const& setting_;
    int ranks_;
    std::optional<study_point> point_;
};

/// What the run is judged by; nothing, and why, where it did not end well.
std::optional<double> judged(study_run const& run, study_plan const& plan, std::string& why) {
    if (run.status != run_status::ok) {
        why = fmt::format("{}; see {}", run.reason, run.output);
        return {};
    }
    auto const value = value_of(run, plan.judged.name, plan);
    if (!value) why = fmt::format("the run told no {}; see {}", plan.judged.name, run.output);
    return value;
}

/// One round at a number of ranks: the study's own run first or last, in turn.
class round_of_trials {
  public:
    round_of_trials(run_setting const& setting, std::vector<tried_advice>& all, int ranks, int rounds)
        : setting_(setting), own_(setting, ranks, nullptr) {
        for (auto& each : all)
            if (is_due(each, ranks, rounds)) trials_.push_back({&each, variant(setting, ranks, &each), {}, {}});
    }

    bool due() const noexcept { return !trials_.empty(); }

    /// Returns false where a signal came.
    bool run(int number) {
        std::string own_failure;
        std::optional<double> own;
        bool const own_first = number % 2 == 0;
        if (own_first && !make(own_, number, own, own_failure)) return false;
        for (auto& each : trials_)
            if (!make(each.changed, number, each.value, each.failure)) return false;
        if (!own_first && !make(own_, number, own, own_failure)) return false;
        for (auto& each : trials_) add(each, own, own_failure);
        return true;
    }

  private:
    struct trial {
        tried_advice* of;
        variant changed;
        std::optional<double> value;
        std::string failure;
    };

    bool make(variant& which, int number, std::optional<double>& value, std::string& failure) {
        if (setting_.signals.came()) return false;
        try {
            auto const run = which.run(number * 100 + made_++);
            if (run.status == run_status::interrupted) return false;
            value = judged(run, setting_.plan, failure);
        } catch (error const& e) {  // it could not be placed
            failure = e.what();
        }
        return true;
    }

    static void add(trial& each, std::optional<double> const& own, std::string const& own_failure) {
        if (own && each.value) {
            each.of->before.push_back(*own);
            each.of->after.push_back(*each.value);
            return;
        }
        ++each.of->failed;
        if (each.of->failure.empty()) each.of->failure = each.value ? "as it was: " + own_failure : each.failure;
    }

    run_setting const& setting_;
    variant own_;
    std::vector<trial> trials_;
    int made_ = 0;
};

int rounds_done(std::vector<tried_advice> const& all, int ranks, int rounds) {
    int least = rounds;
    for (auto const& each : all)
        if (is_due(each, ranks, rounds)) least = std::min(least, static_cast<int>(each.before.size()) + each.failed);
    return least;
}

}  // namespace

std::vector<tried_advice> begun_trials(fs::path const& folder, std::vector<tried_advice> asked) {
    auto const path = file_in(folder);
    if (std::error_code ignored; !fs::exists(path, ignored)) return asked;
    auto const document = read_json_file(path.string());
    checked_json const from(document, path.string());
    for (auto const& item : from.at("tried").items()) {
        auto const begun = read_tried_advice(item);
        auto const same = std::ranges::find_if(asked, [&](auto const& each) { return same_change(each, begun); });
        if (same == asked.end()) continue;
        same->before = begun.before;
        same->after = begun.after;
        same->failed = begun.failed;
        same->failure = begun.failure;
    }
    return asked;
}

int try_advice(run_setting const& setting, std::vector<tried_advice>& all, int rounds) {
    std::vector<int> ranks;
    for (auto const& each : all)
        if (is_due(each, each.ranks, rounds) && std::ranges::find(ranks, each.ranks) == ranks.end()) ranks.push_back(each.ranks);
    for (int const n : ranks)
        for (;;) {
            int const number = rounds_done(all, n, rounds);
            round_of_trials round(setting, all, n, rounds);
            if (!round.due()) break;
            if (!round.run(number)) return setting.signals.came().value_or(SIGINT);
            keep(setting.folder, all);
            fmt::print(stderr, "[what if, {} rank{}] round {} of {}\n", n, n == 1 ? "" : "s", number + 1, rounds);
        }
    keep(setting.folder, all);
    return 0;
}

}  // namespace muster
