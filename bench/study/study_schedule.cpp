#include "bench/study/study_schedule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "base/text.hpp"

namespace muster {

namespace {

/// Returns the next number of a generator with a fixed formula (splitmix64), so that a seed gives the same order everywhere.
std::uint64_t next_random(std::uint64_t& state) {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

std::vector<int> turn(study_plan const& plan, int number) {
    auto ranks = plan.ranks;
    if (!plan.shuffle) return ranks;
    auto state = static_cast<std::uint64_t>(*plan.shuffle) * 1'000'003U + static_cast<std::uint64_t>(number);
    for (std::size_t left = ranks.size(); left > 1; --left) std::swap(ranks[left - 1], ranks[next_random(state) % left]);
    return ranks;
}

bool is_run(study_run const& run, due_run const& due) {
    return run.ranks == due.ranks && run.repetition == due.repetition && run.warmup == due.warmup;
}

bool is_done(study_run const& run, bool retry) {
    return run.status == run_status::ok || (!retry && run.status != run_status::interrupted);
}

class comparison {
  public:
    template <class Value>
    void of(std::string_view what, Value const& then, Value const& now) {
        if (then != now) out_ += fmt::format("\n  {}: {} then, {} now", what, shown(then), shown(now));
    }
    void add(std::string const& text) { out_ += text; }
    std::string text() const { return out_; }

  private:
    static std::string shown(std::vector<std::string> const& words) { return words.empty() ? "none" : shell_join(words); }
    static std::string shown(std::vector<int> const& numbers) { return fmt::format("{}", fmt::join(numbers, ",")); }
    static std::string shown(std::string const& text) { return text.empty() ? "none" : text; }
    static std::string shown(std::optional<long> const& number) { return number ? std::to_string(*number) : "none"; }
    static std::string shown(int number) { return std::to_string(number); }
    static std::string shown(double seconds) { return seconds > 0 ? fmt::format("{:g} s", seconds) : "none"; }

    std::string out_;
};

/// Numbers of ranks may be added to a study, but not removed.
void compare_ranks(comparison& compared, std::vector<int> const& then, std::vector<int> const& now) {
    auto all = then;
    for (int const ranks : now)
        if (std::ranges::find(then, ranks) == then.end()) all.push_back(ranks);
    if (std::ranges::is_permutation(all, now)) return;
    compared.of("ranks", then, now);
    if (all.size() > then.size()) compared.add(fmt::format("; to add to them, give --ranks {}", fmt::join(all, ",")));
}

std::string patterns_text(study_plan const& plan) {
    std::vector<std::string> out;
    for (auto const& p : plan.patterns) out.push_back(pattern_text(p));
    return join(out, " ");
}

}  // namespace

std::vector<due_run> all_runs(study_plan const& plan) {
    std::vector<due_run> out;
    for (int i = 0; i < plan.warmup; ++i)
        for (int const ranks : plan.ranks) out.push_back({ranks, i, true});
    for (int i = 0; i < plan.repeats; ++i)
        for (int const ranks : turn(plan, i)) out.push_back({ranks, i, false});
    return out;
}

std::vector<due_run> missing_runs(study_plan const& plan, std::vector<study_run> const& made, bool retry) {
    auto due = all_runs(plan);
    std::erase_if(due, [&](due_run const& one) {
        return std::any_of(made.begin(), made.end(),
                           [&](study_run const& run) { return is_run(run, one) && is_done(run, retry); });
    });
    return due;
}

std::vector<study_run> latest_runs(std::vector<study_run> const& made) {
    std::vector<study_run> out;
    for (auto run = made.begin(); run != made.end(); ++run) {
        due_run const same{run->ranks, run->repetition, run->warmup};
        if (std::none_of(run + 1, made.end(), [&](auto const& later) { return is_run(later, same); })) out.push_back(*run);
    }
    return out;
}

std::string difference(study_plan const& begun, study_plan const& asked) {
    comparison compared;
    compared.of("program", begun.program, asked.program);
    compared.of("protocol", begun.protocol, asked.protocol);
    compare_ranks(compared, begun.ranks, asked.ranks);
    compared.of("series", std::string(to_string(begun.series)), std::string(to_string(asked.series)));
    compared.of("batch", begun.batch, asked.batch);
    compared.of("warm-up", begun.warmup, asked.warmup);
    compared.of("order's seed", begun.shuffle, asked.shuffle);
    compared.of("options of muster run", begun.launch, asked.launch);
    compared.of("metrics", patterns_text(begun), patterns_text(asked));
    compared.of("metric file", begun.metric_file, asked.metric_file);
    compared.of("time limit", begun.timeout_s, asked.timeout_s);
    return compared.text();
}

}  // namespace muster
