#include "bench/report/report_json.hpp"

namespace muster {

namespace {

/// An array of what `write` makes of each.
template <typename All, typename Write>
report_json array_of(All const& all, Write const& write) {
    auto out = report_json::array();
    for (auto const& each : all) out.push_back(write(each));
    return out;
}

template <typename T>
report_json or_null(std::optional<T> const& value) {
    return value ? report_json(*value) : report_json();
}

report_json json_of(std::vector<std::pair<std::string, double>> const& values) {
    auto out = report_json::object();
    for (auto const& [name, value] : values) out[name] = value;
    return out;
}

report_json json_of(row_metric const& metric) {
    auto const& s = metric.value;
    return {{"median", s.median},     {"low", s.spread.low},  {"high", s.spread.high}, {"confidence", s.spread.confidence},
            {"smallest", s.smallest}, {"largest", s.largest}, {"count", s.count},      {"unit", metric.unit}};
}

report_json json_of(speedup_ratio const& ratio, double efficiency) {
    return {{"value", ratio.value},
            {"low", ratio.low},
            {"high", ratio.high},
            {"has_spread", ratio.has_spread},
            {"within_spread", ratio.within_spread},
            {"efficiency", efficiency}};
}

report_json json_of(outlying_run const& one) {
    return {{"repeat", one.repetition + 1}, {"value", one.value}};
}

report_json json_of(scaling_row const& r) {
    report_json row{{"ranks", r.ranks},         {"nodes", r.nodes},        {"cores", r.cores},
                    {"runs", r.runs},           {"failed", r.failed},      {"failure", r.failure},
                    {"speedup", nullptr},       {"crowded", r.crowded},    {"oversubscribed", r.oversubscribed},
                    {"simulated", r.simulated}, {"note", scaling_note(r)}, {"metrics", report_json::object()},
                    {"others", r.others}};
    row["outliers"] = array_of(r.outliers, [](auto const& each) { return json_of(each); });
    for (auto const& metric : r.metrics) row["metrics"][metric.name] = json_of(metric);
    if (r.speedup) row["speedup"] = json_of(*r.speedup, r.efficiency);
    return row;
}

report_json json_of(scaling_finding const& found) {
    return {{"cause", to_string(found.why)},
            {"ranks", found.ranks},
            {"figure", found.figure},
            {"low", found.low},
            {"high", found.high},
            {"text", found.text},
            {"advice", found.advice},
            {"values", json_of(found.values)}};
}

report_json json_of(judgement const& one) {
    constexpr std::string_view names[]{"kept", "broken", "not judged"};
    return {{"verdict", names[static_cast<std::size_t>(one.came)]}, {"text", one.text}, {"values", json_of(one.values)}};
}

report_json json_of(best_point const& best) {
    report_json out{{"kind", "best"},
                    {"ranks", best.ranks},
                    {"nodes", best.nodes},
                    {"metric", best.judged.name},
                    {"value", json_of(best.judged)},
                    {"base", best.base},
                    {"others", best.others}};
    if (best.speedup) out["speedup"] = json_of(*best.speedup, best.efficiency);
    return out;
}

report_json json_of(bad_news const& news) {
    report_json out{{"kind", to_string(news.kind)}};
    switch (news.kind) {
        case bad_news_kind::unfinished: out.update({{"made", news.count}, {"planned", news.of}}); break;
        case bad_news_kind::failed: out.update({{"failed", news.count}, {"made", news.of}}); break;
        case bad_news_kind::broken: out.update({{"broken", news.count}, {"judged", news.of}}); break;
        case bad_news_kind::cause: out.update({{"cause", to_string(news.why)}, {"ranks", news.ranks}}); break;
        case bad_news_kind::busy:
        case bad_news_kind::simulated: break;
    }
    if (news.share) out["share"] = *news.share;
    if (news.ranks_of_core) out["ranks_of_core"] = *news.ranks_of_core;
    return out;
}

report_json tiles_of(study_summary const& of) {
    auto out = report_json::array();
    if (of.best) out.push_back(json_of(*of.best));
    for (auto const& news : of.bad) out.push_back(json_of(news));
    return out;
}

report_json json_of(rank_strip::run const& run) {
    return {{"repetition", run.repetition}, {"values", array_of(run.values, [](auto const& value) { return or_null(value); })}};
}

report_json json_of(shown_run const& run) {
    return {{"order", run.order},           {"ranks", run.ranks},
            {"repetition", run.repetition}, {"warmup", run.warmup},
            {"started", run.started},       {"status", to_string(run.status)},
            {"reason", run.reason},         {"failure", run.failure},
            {"output", run.output},         {"load_average", or_null(run.load_average)},
            {"others", run.others},         {"metrics", json_of(run.metrics)}};
}

report_json json_of(report_fact const& fact) {
    return {{"what", fact.what}, {"value", fact.value}};
}

report_json json_of(checked_rule const& rule) {
    return {{"number", rule.number}, {"rule", rule.rule}, {"answer", to_string(rule.answer)}, {"reason", rule.reason}};
}

report_json json_of(setting_difference const& one) {
    return {{"setting", one.setting}, {"what", one.what}, {"values", one.values}};
}

report_json json_of(busbw_point const& point) {
    return {{"bytes", point.bytes}, {"us", point.us},     {"busbw_gbs", point.busbw_gbs},
            {"low", point.low},     {"high", point.high}, {"samples", point.samples}};
}

report_json json_of(busbw_curve const& curve);
report_json json_of(busbw_table const& table);

template <typename All>
report_json json_of_all(All const& all) {
    return array_of(all, [](auto const& each) { return json_of(each); });
}

report_json json_of(busbw_curve const& curve) {
    return {{"name", curve.name}, {"simulated", curve.simulated}, {"points", json_of_all(curve.points)}};
}

report_json json_of(busbw_table const& table) {
    report_json out{{"file", table.file}, {"created", table.created}, {"command", table.command}, {"host", table.host}};
    if (table.processor) out["processor"] = *table.processor;
    if (table.cores) out["cores"] = *table.cores;
    if (table.load) out["load"] = *table.load;
    if (table.load_before) out["load_before"] = *table.load_before;
    out.update({{"busy", table.busy},
                {"busy_text", table.busy_text},
                {"context", json_of_all(table.context)},
                {"collective", table.collective},
                {"type", table.type},
                {"redop", table.redop},
                {"ranks", table.ranks},
                {"simulated", table.simulated},
                {"curves", json_of_all(table.curves)}});
    return out;
}

}  // namespace

report_json to_json(study_summary const& of) {
    report_json strip;
    if (of.by_rank)
        strip = {{"metric", of.by_rank->metric},
                 {"unit", of.by_rank->unit},
                 {"ranks", of.by_rank->ranks},
                 {"runs", json_of_all(of.by_rank->runs)}};
    return {{"schema", "muster.scaling-summary/4"},
            {"name", of.name},
            {"file", of.file},
            {"created", of.created},
            {"host", of.host},
            {"cores", of.cores},
            {"subtitle", of.subtitle},
            {"judged", of.judged},
            {"judged_unit", of.judged_unit},
            {"judged_rate", of.judged_rate},
            {"series", to_string(of.series)},
            {"base_ranks", or_null(of.base_ranks)},
            {"busy", of.busy},
            {"busy_text", of.busy_text},
            {"notes", of.notes},
            {"published_settings", of.published_settings},
            {"metrics", of.metrics},
            {"headline", of.headline},
            {"unfinished", of.unfinished},
            {"tiles", tiles_of(of)},
            {"rows", json_of_all(of.rows)},
            {"findings", json_of_all(of.findings)},
            {"judgements", json_of_all(of.judgements)},
            {"by_rank", strip},
            {"runs", json_of_all(of.runs)},
            {"context", json_of_all(of.context)},
            {"definitions", json_of_all(of.definitions)},
            {"checklist", json_of_all(of.checklist)},
            {"label", of.label}};
}

report_json to_json(report_document const& of) {
    return {{"schema", "muster.report/1"},
            {"version", of.version},
            {"studies", array_of(of.studies, [](auto const& each) { return to_json(each); })},
            {"differences", json_of_all(of.differences)},
            {"busbw", json_of_all(of.busbw)}};
}

std::string dump_json(report_json const& value) {
    return value.dump(1, ' ', false, report_json::error_handler_t::replace) + "\n";
}

}  // namespace muster
