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

constexpr char const* peers_schema = "muster.collectives/1";
constexpr char const* here_schema = "muster.collectives-here/1";

busbw_point point_of(double bytes, double factor, std::vector<double> const& us) {
    auto const s = summarise(us);
    auto const busbw = [&](double time_us) { return time_us > 0 ? bytes / time_us * 1e-3 * factor : 0; };
    return {bytes, s.median, busbw(s.median), busbw(s.spread.high), busbw(s.spread.low), s.count};
}

/// The times of one size; those in place where there are no others.
template <typename Read>
std::vector<double> times_of(checked_json const& cell, Read const& read) {
    std::vector<double> us;
    for (auto const* place : {"out_of_place_us", "in_place_us"})
        if (us.empty())
            for (auto const& one : cell.at(place).items()) us.push_back(read(one));
    return us;
}

/// What was recorded of machine and versions, as a study's context has it.
std::vector<report_fact> context_of(checked_json const& from, machine_load const* load, std::string const& file) {
    auto const told = [](checked_json const& at, char const* name) { return at.has(name) ? at.at(name).text() : std::string(); };
    auto const context = from.at("context");
    auto machine = context.at("host").text();
    if (auto const processor = told(context, "processor"); !processor.empty()) machine += ": " + processor;
    if (context.has("cores")) {
        auto const cores = context.at("cores").integer(0, 1'000'000);
        machine += fmt::format(", {} core{}", cores, cores == 1 ? "" : "s");
    }
    std::vector<std::string> versions;
    if (auto const own = told(from, "version"); !own.empty()) versions.push_back("muster " + own);
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

void set_collective(checked_json const& from, busbw_table& table) {
    table.collective = from.at("collective").text();
    table.type = from.at("type").text();
    table.redop = from.at("redop").text();
}

/// One table of `collectives`: a curve for each library.
void add_peers(checked_json const& from, std::string const& file, std::vector<busbw_table>& tables) {
    auto table = head_of(from, file);
    set_collective(from, table);
    table.ranks = static_cast<int>(from.at("ranks").integer(1, 1'000'000));
    table.simulated = from.at("simulated").boolean();
    double const factor = from.at("bus_factor").number();
    std::map<std::string, bool> simulated;
    for (auto const& job : from.at("jobs").items()) simulated[job.at("name").text()] = job.at("simulated").boolean();
    for (auto const& cell : from.at("cells").items()) {
        auto const name = cell.at("by").text();
        auto const us = times_of(cell, [](auto const& one) { return one.number(); });
        if (us.empty() || cell.at("bytes").number() <= 0) continue;
        auto found = std::ranges::find(table.curves, name, &busbw_curve::name);
        if (found == table.curves.end()) found = table.curves.insert(found, {name, simulated[name], {}});
        found->points.push_back(point_of(cell.at("bytes").number(), factor, us));
    }
    tables.push_back(std::move(table));
}

/// `collectives-here`: times of the slowest rank of each sample.
void add_here(checked_json const& from, std::string const& file, std::vector<busbw_table>& tables) {
    for (auto const& each : from.at("tables").items()) {
        auto table = head_of(from, file);
        set_collective(each, table);
        table.ranks = static_cast<int>(from.at("hosts").items().size());
        double const factor = each.at("bus_factor").number();
        busbw_curve curve{from.at("backend").text(), false, {}};
        for (auto const& size : each.at("sizes").items()) {
            auto const us = times_of(size, [](auto const& sample) { return sample.at("max").number(); });
            if (!us.empty() && size.at("bytes").number() > 0)
                curve.points.push_back(point_of(size.at("bytes").number(), factor, us));
        }
        table.curves.push_back(std::move(curve));
        tables.push_back(std::move(table));
    }
}

}  // namespace

bool is_collectives(nlohmann::json const& document) {
    auto const& one = document.is_array() && !document.empty() ? document.front() : document;
    if (!one.is_object() || !one.contains("schema")) return false;
    return one.at("schema") == peers_schema || one.at("schema") == here_schema;
}

void add_busbw_tables(checked_json const& from, std::string const& file, std::vector<busbw_table>& tables) {
    if (from.value().is_array()) {
        for (auto const& each : from.items()) add_busbw_tables(each, file, tables);
    } else if (from.at("schema").text() == here_schema) {
        add_here(from, file, tables);
    } else {
        add_peers(from, file, tables);
    }
}

}  // namespace muster
