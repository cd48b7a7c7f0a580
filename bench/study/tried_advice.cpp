#include "bench/study/tried_advice.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace muster {

namespace {

bool is_interval(summary const& ratio) {
    return ratio.spread.confidence >= 0.95;
}

std::string spread_text(summary const& ratio, std::string_view unit = "") {
    return fmt::format("{:.2f} to {:.2f}{}, {} of {} rounds taking turns", ratio.spread.low, ratio.spread.high, unit,
                       is_interval(ratio) ? fmt::format("{:.0f}% interval", 100 * ratio.spread.confidence) : "range",
                       ratio.count);
}

std::vector<std::string> words_of(checked_json const& from) {
    std::vector<std::string> out;
    for (auto const& each : from.items()) out.push_back(each.text());
    return out;
}

std::vector<double> numbers_of(checked_json const& from) {
    std::vector<double> out;
    for (auto const& each : from.items()) out.push_back(each.number());
    return out;
}

}  // namespace

std::string_view to_string(advice_outcome outcome) noexcept {
    switch (outcome) {
        case advice_outcome::not_tried: return "not tried";
        case advice_outcome::failed: return "failed";
        case advice_outcome::not_known: return "not known";
        case advice_outcome::helped: return "helped";
        case advice_outcome::hurt: return "hurt";
        case advice_outcome::within_spread: return "within the spread";
    }
    return "unknown";
}

summary times_as_fast(tried_advice const& tried) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < tried.before.size() && i < tried.after.size(); ++i)
        if (tried.before[i] > 0 && tried.after[i] > 0)
            ratios.push_back(tried.rate ? tried.after[i] / tried.before[i] : tried.before[i] / tried.after[i]);
    return ratios.empty() ? summary{} : summarise(ratios);
}

advice_outcome outcome_of(tried_advice const& tried) {
    if (!tried.not_tried.empty()) return advice_outcome::not_tried;
    auto const ratio = times_as_fast(tried);
    if (ratio.count == 0) return advice_outcome::failed;
    if (ratio.spread.low <= 1 && ratio.spread.high >= 1 && ratio.count > 1) return advice_outcome::within_spread;
    if (!is_interval(ratio)) return advice_outcome::not_known;
    return ratio.spread.low > 1 ? advice_outcome::helped : advice_outcome::hurt;
}

std::string outcome_text(tried_advice const& tried) {
    auto const outcome = outcome_of(tried);
    if (outcome == advice_outcome::not_tried) return fmt::format("not tried: {}", tried.not_tried);
    auto const where = fmt::format("{} at {} rank{}", tried.change, tried.ranks, tried.ranks == 1 ? "" : "s");
    auto const failures = tried.failed == 0 ? "" : fmt::format("; {} more failed: {}", tried.failed, tried.failure);
    if (outcome == advice_outcome::failed)
        return fmt::format("not known: no round with {} ended well: {}", where,
                           tried.failure.empty() ? "stopped" : tried.failure);
    auto const ratio = times_as_fast(tried);
    if (outcome == advice_outcome::not_known)
        return ratio.count == 1 ? fmt::format("not known: {:.2f} times as fast in one round with {}; give --repeats {}{}",
                                              ratio.median, where, runs_for_interval, failures)
                                : fmt::format("not known: {} in all {} rounds ({}) with {}; give --repeats {}{}",
                                              ratio.median > 1 ? "faster" : "slower", ratio.count,
                                              spread_text(ratio, " times as fast"), where, runs_for_interval, failures);
    if (outcome == advice_outcome::within_spread)
        return fmt::format("within the spread ({}) with {}{}", spread_text(ratio, " times as fast"), where, failures);
    return fmt::format("it {}: {:.2f} times as fast ({}) with {}{}", to_string(outcome), ratio.median, spread_text(ratio), where,
                       failures);
}

std::string tried_text(std::vector<tried_advice> const& all) {
    std::string text;
    for (auto const& each : all) text += fmt::format("what if ({}): {}\n", each.cause, outcome_text(each));
    return text;
}

nlohmann::json to_json(tried_advice const& tried) {
    nlohmann::json out{{"cause", tried.cause},        {"advice", tried.advice},       {"ranks", tried.ranks},
                       {"change", tried.change},      {"not_tried", tried.not_tried}, {"launch", tried.launch},
                       {"program", tried.program},    {"settings", tried.settings},   {"metric", tried.metric},
                       {"rate", tried.rate},          {"before", tried.before},       {"after", tried.after},
                       {"failed", tried.failed},      {"failure", tried.failure},     {"outcome", to_string(outcome_of(tried))},
                       {"text", outcome_text(tried)}, {"times_as_fast", nullptr}};
    if (auto const ratio = times_as_fast(tried); ratio.count > 0)
        out["times_as_fast"] = {{"median", ratio.median},
                                {"low", ratio.spread.low},
                                {"high", ratio.spread.high},
                                {"confidence", ratio.spread.confidence},
                                {"rounds", ratio.count}};
    return out;
}

tried_advice read_tried_advice(checked_json const& from) {
    return {.cause = from.at("cause").text(),
            .advice = from.at("advice").text(),
            .ranks = static_cast<int>(from.at("ranks").integer(1, 10'000'000)),
            .change = from.at("change").text(),
            .not_tried = from.at("not_tried").text(),
            .launch = words_of(from.at("launch")),
            .program = words_of(from.at("program")),
            .settings = words_of(from.at("settings")),
            .metric = from.at("metric").text(),
            .rate = from.at("rate").boolean(),
            .before = numbers_of(from.at("before")),
            .after = numbers_of(from.at("after")),
            .failed = static_cast<int>(from.at("failed").integer(0, 10'000'000)),
            .failure = from.at("failure").text()};
}

}  // namespace muster
