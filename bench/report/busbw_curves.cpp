#include "bench/report/busbw_curves.hpp"

#include <algorithm>
#include <map>

#include "bench/tools/statistics.hpp"

namespace muster {

namespace {

constexpr char const* peers_schema = "muster.collectives/1";
constexpr char const* here_schema = "muster.collectives-here/1";

report_json point_of(double bytes, double factor, std::vector<double> const& us) {
    auto const s = summarise(us);
    auto const busbw = [&](double time_us) { return time_us > 0 ? bytes / time_us * 1e-3 * factor : 0; };
    return {{"bytes", bytes},
            {"us", s.median},
            {"busbw_gbs", busbw(s.median)},
            {"low", busbw(s.spread.high)},
            {"high", busbw(s.spread.low)},
            {"samples", s.count}};
}

report_json head_of(checked_json const& from, std::string const& file) {
    auto const context = from.at("context");
    report_json out{{"file", file},
                    {"created", from.at("created").text()},
                    {"command", from.at("command").text()},
                    {"host", context.at("host").text()}};
    for (auto const* name : {"processor", "cores", "load", "load_before"})
        if (context.has(name)) out[name] = context.at(name).value();
    return out;
}

/// One table of `collectives`: a curve for each library.
void add_peers(checked_json const& from, std::string const& file, report_json& curves) {
    auto table = head_of(from, file);
    for (auto const* name : {"collective", "type", "redop"}) table[name] = from.at(name).text();
    table["ranks"] = from.at("ranks").integer(1, 1'000'000);
    table["simulated"] = from.at("simulated").boolean();
    double const factor = from.at("bus_factor").number();
    std::map<std::string, bool> simulated;
    for (auto const& job : from.at("jobs").items()) simulated[job.at("name").text()] = job.at("simulated").boolean();
    auto by = report_json::array();
    for (auto const& cell : from.at("cells").items()) {
        auto const name = cell.at("by").text();
        std::vector<double> us;
        for (auto const* place : {"out_of_place_us", "in_place_us"})
            if (us.empty())
                for (auto const& one : cell.at(place).items()) us.push_back(one.number());
        if (us.empty() || cell.at("bytes").number() <= 0) continue;
        auto found = std::find_if(by.begin(), by.end(), [&](auto const& each) { return each.at("name") == name; });
        if (found == by.end()) {
            by.push_back({{"name", name}, {"simulated", simulated[name]}, {"points", report_json::array()}});
            found = by.end() - 1;
        }
        (*found)["points"].push_back(point_of(cell.at("bytes").number(), factor, us));
    }
    table["curves"] = by;
    curves.push_back(table);
}

/// `collectives-here`: times of the slowest rank of each sample.
void add_here(checked_json const& from, std::string const& file, report_json& curves) {
    for (auto const& each : from.at("tables").items()) {
        auto table = head_of(from, file);
        for (auto const* name : {"collective", "type", "redop"}) table[name] = each.at(name).text();
        table["ranks"] = from.at("hosts").items().size();
        table["simulated"] = false;
        double const factor = each.at("bus_factor").number();
        auto points = report_json::array();
        for (auto const& size : each.at("sizes").items()) {
            std::vector<double> us;
            for (auto const* place : {"out_of_place_us", "in_place_us"})
                if (us.empty())
                    for (auto const& sample : size.at(place).items()) us.push_back(sample.at("max").number());
            if (!us.empty() && size.at("bytes").number() > 0) points.push_back(point_of(size.at("bytes").number(), factor, us));
        }
        table["curves"] = report_json::array();
        table["curves"].push_back({{"name", from.at("backend").text()}, {"simulated", false}, {"points", points}});
        curves.push_back(table);
    }
}

}  // namespace

bool is_collectives(nlohmann::json const& document) {
    auto const& one = document.is_array() && !document.empty() ? document.front() : document;
    if (!one.is_object() || !one.contains("schema")) return false;
    return one.at("schema") == peers_schema || one.at("schema") == here_schema;
}

void add_busbw_curves(checked_json const& from, std::string const& file, report_json& curves) {
    if (from.value().is_array()) {
        for (auto const& each : from.items()) add_busbw_curves(each, file, curves);
    } else if (from.at("schema").text() == here_schema) {
        add_here(from, file, curves);
    } else {
        add_peers(from, file, curves);
    }
}

}  // namespace muster
