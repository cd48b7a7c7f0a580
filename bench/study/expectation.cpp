#include "bench/study/expectation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "bench/study/findings.hpp"
#include "bench/study/program_software.hpp"

namespace muster {

namespace {

/// Reads an expectation from left to right; `at_` is the next character.
class expectation_reader {
  public:
    explicit expectation_reader(std::string const& text) : text_(text) {}

    expectation read() {
        expectation out;
        out.text = std::string(trim(text_));
        out.metric = name();
        if (skip_blanks(); next() == '[') out.ranks = ranks();
        skip_blanks();
        out.op = op();
        skip_blanks();
        out.value = value();
        return out;
    }

  private:
    char next() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
    void skip_blanks() {
        while (next() == ' ' || next() == '\t') ++at_;
    }
    [[noreturn]] void fail(std::size_t at, std::string const& what) const {
        throw parse_error("--expect", text_, at, what, errc::usage);
    }

    std::string name() {
        skip_blanks();
        auto const begin = at_;
        while (at_ < text_.size() && is_metric_name(std::string_view(&text_[at_], 1))) ++at_;
        auto const found = text_.substr(begin, at_ - begin);
        if (!is_metric_name(found)) fail(begin, "expected a metric, as in speedup[4]>=3.5");
        return found;
    }

    int ranks() {
        auto const begin = ++at_;
        auto const end = text_.find(']', begin);
        if (end == text_.npos) fail(begin - 1, "expected ']' behind the number of ranks");
        auto const number = parse_integer(trim(std::string_view(text_).substr(begin, end - begin)));
        if (!number || *number < 1 || *number > 1'000'000) fail(begin, "expected a number of ranks, as in speedup[4]>=3.5");
        at_ = end + 1;
        return static_cast<int>(*number);
    }

    bound op() {
        auto const sign = next();
        if (sign != '<' && sign != '>') fail(at_, "expected >=, <=, > or <");
        ++at_;
        bool const equal = next() == '=';
        if (equal) ++at_;
        if (sign == '>') return equal ? bound::at_least : bound::above;
        return equal ? bound::at_most : bound::below;
    }

    double value() {
        auto rest = trim(std::string_view(text_).substr(at_));
        bool const percent = rest.ends_with('%');
        if (percent) rest = trim(rest.substr(0, rest.size() - 1));
        auto const number = parse_real(rest);
        if (!number || !(std::abs(*number) <= 1e300)) fail(at_, "expected a number, as in 3.5 or 80%");
        return percent ? *number / 100 : *number;
    }

    std::string const& text_;
    std::size_t at_ = 0;
};

bool holds(double measured, bound op, double value) {
    switch (op) {
        case bound::at_least: return measured >= value;
        case bound::at_most: return measured <= value;
        case bound::above: return measured > value;
        case bound::below: return measured < value;
    }
    return false;
}

struct measured_value {
    double value = 0, low = 0, high = 0;
    bool spread = false;  ///< low and high are known
};

bool is_ratio(std::string const& name) {
    return name == "speedup" || name == "efficiency";
}

std::optional<measured_value> measured(std::string const& name, scaling_row const& row, study_plan const& plan) {
    auto const* judged = row.find(is_ratio(name) ? plan.judged.name : name);
    if (judged == nullptr) return {};
    bool const spread = judged->value.count > 1;
    if (!is_ratio(name)) return measured_value{judged->value.median, judged->value.spread.low, judged->value.spread.high, spread};
    if (!row.speedup || row.speedup->value <= 0) return {};
    double const unit = name == "speedup" ? 1 : row.efficiency / row.speedup->value;
    return measured_value{row.speedup->value * unit, row.speedup->low * unit, row.speedup->high * unit,
                          spread && row.speedup->low != row.speedup->high};
}

std::string shown(measured_value const& m) {
    return m.spread ? fmt::format("{} ({} to {})", format_value(m.value), format_value(m.low), format_value(m.high))
                    : format_value(m.value);
}

std::string why_not_measured(std::string const& name, scaling_row const& row) {
    if (row.runs == 0) return fmt::format("no run ended well: {}", row.failure);
    std::vector<std::string> known{"speedup", "efficiency"};
    for (auto const& m : row.metrics) known.push_back(m.name);
    return "no run printed it; " + known_metrics_text(name, known);
}

judgement judge_row(expectation const& wanted, scaling_row const& row, study_plan const& plan) {
    auto const what = wanted.ranks ? wanted.text : fmt::format("{} at {}", wanted.text, counted(row.ranks, "rank"));
    auto const value = measured(wanted.metric, row, plan);
    if (!value) return {expectation_outcome::broken, fmt::format("broken: {}: {}", what, why_not_measured(wanted.metric, row))};
    judgement out{expectation_outcome::broken,
                  {},
                  {{"ranks", row.ranks}, {"value", value->value}, {"low", value->low}, {"high", value->high}}};
    bool const low = holds(value->low, wanted.op, wanted.value), high = holds(value->high, wanted.op, wanted.value);
    if (value->spread && low != high) {
        out.came = expectation_outcome::not_judged;
        out.text = fmt::format("not judged: {}: {}: the bound lies within the spread; give more --repeats", what, shown(*value));
    } else {
        bool const good = holds(value->value, wanted.op, wanted.value);
        out.came = good ? expectation_outcome::kept : expectation_outcome::broken;
        out.text = fmt::format("{}: {}: {}", good ? "kept" : "broken", what, shown(*value));
    }
    return out;
}

judgement compare_row(scaling_row const& now, scaling_row const& before, judged_metric const& judged, double tolerance) {
    auto const ranks = fmt::format("{} at {}", judged.name, counted(now.ranks, "rank"));
    auto const *a = now.find(judged.name), *b = before.find(judged.name);
    judgement out{expectation_outcome::broken, {}, {{"ranks", now.ranks}, {"allowed", tolerance}}};
    if (b == nullptr) {
        out.came = expectation_outcome::not_judged;
        out.text = fmt::format("not judged: {}: the baseline has none", ranks);
        return out;
    }
    if (a == nullptr) {
        out.text = fmt::format("worse: {}: {}", ranks, why_not_measured(judged.name, now));
        return out;
    }
    double const change = b->value.median != 0 ? a->value.median / b->value.median - 1 : 0;
    out.values.insert(out.values.end(), {{"now", a->value.median}, {"before", b->value.median}, {"change", change}});
    auto const text = fmt::format("{}: {} against {} ({:+.1f}%, {:.1f}% allowed)", ranks, format_value(a->value.median),
                                  format_value(b->value.median), 100 * change, 100 * tolerance);
    bool const worse = judged.rate ? change < -tolerance : change > tolerance;
    bool const spread = a->value.count > 1 && b->value.count > 1;
    bool const apart = judged.rate ? a->value.spread.high < b->value.spread.low : a->value.spread.low > b->value.spread.high;
    out.came = !worse             ? expectation_outcome::kept
               : spread && !apart ? expectation_outcome::not_judged
                                  : expectation_outcome::broken;
    out.text = out.came == expectation_outcome::kept         ? "kept: " + text
               : out.came == expectation_outcome::not_judged ? fmt::format("not judged: {}: the spreads overlap", text)
                                                             : "worse: " + text;
    return out;
}

/// Describes the runs' work; for a built-in network without its interpreter and the script's place.
std::string work_text(study_plan const& plan) {
    std::vector<std::string> const words(
        plan.program.begin() + (plan.has_net() ? std::min<std::ptrdiff_t>(2, std::ssize(plan.program)) : 0), plan.program.end());
    return fmt::format("'{}'{}{}", shell_join(words),
                       plan.series == work_series::as_given ? "" : fmt::format(", {}", to_string(plan.series)),
                       plan.batch ? fmt::format(", batch {}", *plan.batch) : "");
}

std::string machine_text(machine_facts const& m) {
    return fmt::format("{} with {} cores, GPUs: {}", m.processor.empty() ? "an unknown processor" : m.processor, m.cores, m.gpus);
}

}  // namespace

expectation parse_expectation(std::string const& text) {
    return expectation_reader(text).read();
}

std::string known_metrics_text(std::string const& name, std::vector<std::string> const& known) {
    auto const near = nearest(name, known);
    return fmt::format("known are {}{}", join(known, ", "), near ? fmt::format("; did you mean {}?", *near) : "");
}

std::vector<judgement> judge(expectation const& wanted, std::vector<scaling_row> const& rows, study_plan const& plan) {
    std::vector<judgement> out;
    auto const* base = base_row(rows, plan);
    auto const& metric = is_ratio(wanted.metric) ? plan.judged.name : wanted.metric;
    auto const any = std::ranges::find_if(rows, [](auto const& row) { return row.runs > 0; });
    bool const unknown = std::ranges::none_of(rows, [&](auto const& row) { return row.find(metric) != nullptr; });
    if (!wanted.ranks && unknown && any != rows.end())
        return {{expectation_outcome::broken, fmt::format("broken: {}: {}", wanted.text, why_not_measured(wanted.metric, *any))}};
    for (auto const& row : rows) {
        bool const meant = wanted.ranks ? row.ranks == *wanted.ranks : !(is_ratio(wanted.metric) && &row == base);
        if (meant) out.push_back(judge_row(wanted, row, plan));
    }
    if (out.empty())
        out.push_back(
            {expectation_outcome::broken,
             fmt::format("broken: {}: {}", wanted.text,
                         wanted.ranks ? fmt::format("the study has no runs of {}", ranks_text(*wanted.ranks))
                                      : "there is one number of ranks only, so nothing to compare; give more with --ranks")});
    return out;
}

void refuse_other_baseline(study_plan const& now, study const& before) {
    auto const& then = before.plan;
    if (now.judged != then.judged)
        throw_error(errc::usage,
                    "--baseline: it is judged by {}, this study by {}; give the same --time-metric or --rate-metric to both",
                    then.judged.name, now.judged.name);
    if (now.net != then.net || (!now.has_net() && program_name(now.program) != program_name(then.program)))
        throw_error(errc::usage,
                    "--baseline: it is of another program: {} there, {} here; give a study of the same one (muster-bench report "
                    "shows two side by side)",
                    work_text(then), work_text(now));
    auto const has = [&](int ranks) { return std::ranges::find(then.ranks, ranks) != then.ranks.end(); };
    if (!now.ranks.empty() && std::ranges::none_of(now.ranks, has))
        throw error(errc::usage,
                    "--baseline: it has no number of ranks in common with this study; give one with the same --ranks");
}

std::vector<judgement> compare_with_baseline(study const& now, study const& before, double tolerance) {
    refuse_other_baseline(now.plan, before);
    auto const rows = scaling_rows(now), old = scaling_rows(before);
    std::vector<judgement> out;
    auto const note = [&](std::string_view what, std::string const& there, std::string const& here) {
        if (there != here)
            out.push_back(
                {expectation_outcome::not_judged,
                 fmt::format("note: the baseline {} {}, this study {}: what follows means something only if that makes no "
                             "difference",
                             what, there, here)});
    };
    note("is of", work_text(before.plan), work_text(now.plan));
    note("ran on", machine_text(before.machine), machine_text(now.machine));
    auto const notes = out.size();
    for (auto const& row : rows)
        for (auto const& was : old)
            if (was.ranks == row.ranks) out.push_back(compare_row(row, was, now.plan.judged, tolerance));
    if (out.size() == notes)
        throw error(errc::usage,
                    "--baseline: it has no runs of a number of ranks in common with this study; give one with the same --ranks");
    return out;
}

}  // namespace muster
