#include "bench/report/busbw_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "bench/tools/crowd.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

namespace {

constexpr char const* table_schema = "muster.collectives/1";
constexpr char const* messages_schema = "muster.messages/1";

busbw_point point_of(double bytes, double factor, std::vector<double> const& us) {
    auto const s = summarise(us);
    auto const busbw = [&](double time_us) { return time_us > 0 ? bytes / time_us * 1e-3 * factor : 0; };
    return {bytes, s.median, busbw(s.median), busbw(s.spread.high), busbw(s.spread.low), s.count};
}

/// The times of one size; those in place where there are no others.
std::vector<double> times_of(checked_json const& cell) {
    std::vector<double> us;
    for (auto const* place : {"out_of_place_us", "in_place_us"})
        if (us.empty())
            for (auto const& one : cell.at(place).items()) us.push_back(one.number());
    return us;
}

/// Returns the recorded machine and versions, in the form of a study's context.
std::vector<report_fact> context_of(checked_json const& from, machine_load const* load, std::string const& file) {
    auto const told = [](checked_json const& at, char const* name) { return at.has(name) ? at.at(name).text() : std::string(); };
    auto const context = from.at("context");
    auto machine = context.at("host").text();
    if (auto const processor = told(context, "processor"); !processor.empty()) machine += ": " + processor;
    if (context.has("cores")) machine += ", " + counted(context.at("cores").integer(0, 1'000'000), "core");
    std::vector<std::string> versions;
    if (from.has("jobs"))
        for (auto const& job : from.at("jobs").items()) versions.push_back(job.at("name").text() + ": " + told(job, "version"));
    if (auto const compiler = told(context, "compiler"); !compiler.empty()) versions.push_back("built by " + compiler);
    std::vector<report_fact> out;
    for (auto& [what, value] : {std::pair<char const*, std::string>{"Machine", machine},
                                {"System", told(context, "kernel")},
                                {"Versions", join(versions, "; ")},
                                {"Load", load == nullptr ? "not recorded" : crowd_text(*load)},
                                {"Measured", from.at("created").text()},
                                {"Command", from.at("command").text()},
                                {"File", file}})
        if (!value.empty()) out.push_back({what, value});
    return out;
}

busbw_table head_of(checked_json const& from, std::string const& file) {
    auto const context = from.at("context");
    busbw_table out;
    out.file = file;
    out.created = from.at("created").text();
    out.command = from.at("command").text();
    out.host = context.at("host").text();
    if (context.has("processor")) out.processor = context.at("processor").text();
    if (context.has("cores")) out.cores = context.at("cores").integer();
    if (context.has("load")) out.load = context.at("load").number();
    if (context.has("load_before")) out.load_before = context.at("load_before").number();
    std::optional<machine_load> load;
    if (from.has("load")) load = read_load(from.at("load"));
    out.busy = load && load->crowded();
    out.busy_text = load ? fmt::format("{} the runs {}", load->crowded_before() ? "Before" : "During", crowd_text(*load)) : "";
    out.context = context_of(from, load ? &*load : nullptr, file);
    return out;
}

/// A curve for each library.
busbw_table table_of(checked_json const& from, std::string const& file) {
    auto table = head_of(from, file);
    table.collective = from.at("collective").text();
    table.type = from.at("type").text();
    table.redop = from.at("redop").text();
    table.ranks = static_cast<int>(from.at("ranks").integer(1, 1'000'000));
    table.simulated = from.at("simulated").boolean();
    double const factor = from.at("bus_factor").number();
    std::map<std::string, bool> simulated;
    for (auto const& job : from.at("jobs").items()) simulated[job.at("name").text()] = job.at("simulated").boolean();
    for (auto const& cell : from.at("cells").items()) {
        auto const name = cell.at("by").text();
        auto const us = times_of(cell);
        if (us.empty() || cell.at("bytes").number() <= 0) continue;
        auto found = std::ranges::find(table.curves, name, &busbw_curve::name);
        if (found == table.curves.end()) found = table.curves.insert(found, {name, simulated[name], {}});
        found->points.push_back(point_of(cell.at("bytes").number(), factor, us));
    }
    return table;
}

}  // namespace

bool is_collectives(nlohmann::json const& document) {
    auto const& one = document.is_array() && !document.empty() ? document.front() : document;
    if (!one.is_object() || !one.contains("schema")) return false;
    return one.at("schema") == table_schema || one.at("schema") == messages_schema;
}

void add_busbw_tables(checked_json const& from, std::string const& file, std::vector<busbw_table>& tables) {
    if (from.value().is_array()) {
        for (auto const& each : from.items()) add_busbw_tables(each, file, tables);
    } else if (from.at("schema").text() == table_schema) {
        tables.push_back(table_of(from, file));
    }
}

}  // namespace muster
