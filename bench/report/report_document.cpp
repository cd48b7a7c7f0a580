#include "bench/report/report_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "bench/report/study_summary.hpp"
#include "bench/tools/crowd.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr char const* what_to_give =
    "give the results.json that muster-bench scale wrote, its folder, or the --json of collectives";

/// What another command wrote is told before what it lacks of a study.
void refuse_other_schema(nlohmann::json const& document, std::string const& file) {
    if (!document.is_object() || !document.contains("schema") || !document.at("schema").is_string()) return;
    auto const schema = document.at("schema").get<std::string>();
    if (schema.starts_with("muster.results/")) return;
    throw error(errc::invalid_data,
                fmt::format("{}: holds '{}', of which there is no report; {}", file, without_controls(schema), what_to_give));
}

fs::path place_of(reported_study const& one) {
    fs::path const file = one.file;
    return file.filename() == "results.json" && file.has_parent_path() ? file.parent_path() : file;
}

/// The name; if several studies have it, with the folder, and with all of its path if they share that too.
std::vector<std::string> labels_of(report_input const& input) {
    std::vector<std::string> out;
    for (auto const& each : input.studies) {
        auto const here = place_of(each);
        auto const shared = [&](auto const& same) { return std::ranges::count_if(input.studies, same) > 1; };
        bool const name = shared([&](auto const& o) { return o.results.name == each.results.name; });
        bool const folder = shared(
            [&](auto const& o) { return o.results.name == each.results.name && place_of(o).filename() == here.filename(); });
        out.push_back(!name ? each.results.name
                            : fmt::format("{} ({})", each.results.name, folder ? here.string() : here.filename().string()));
    }
    return out;
}

}  // namespace

report_input read_report_input(std::vector<std::string> const& paths) {
    report_input out;
    for (auto const& path : paths) {
        fs::path const file = results_file(path);
        auto const document = read_json_file(file.string(), what_to_give);
        if (is_collectives(document)) {
            add_busbw_curves(checked_json(document, file.string()), file.string(), out.busbw);
            continue;
        }
        refuse_other_schema(document, file.string());
        out.studies.push_back({read_study(document, file.string()), file.string()});
    }
    return out;
}

report_json report_document(report_input const& input) {
    report_json out{{"schema", "muster.report/1"},
                    {"version", version()},
                    {"studies", report_json::array()},
                    {"differences", study_differences(input.studies)},
                    {"busbw", input.busbw}};
    auto const labels = labels_of(input);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        auto summary = study_summary(input.studies[i].results, input.studies[i].file, input.studies[i].judged);
        summary["label"] = labels[i];
        out["studies"].push_back(summary);
    }
    return out;
}

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

/// What was recorded of machine and versions, as a study's context has it.
report_json context_of(checked_json const& from, machine_load const* load, std::string const& file) {
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
    auto out = report_json::array();
    for (auto& [what, value] : {std::pair<char const*, std::string>{"Machine", machine},
                                {"System", told(context, "kernel")},
                                {"Versions", join(versions, "; ")},
                                {"Load", load == nullptr ? "not recorded" : crowd_text(*load)},
                                {"Measured", from.at("created").text()},
                                {"Command", from.at("command").text()},
                                {"File", file}})
        if (!value.empty()) out.push_back({{"what", what}, {"value", value}});
    return out;
}

report_json head_of(checked_json const& from, std::string const& file) {
    auto const context = from.at("context");
    report_json out{{"file", file},
                    {"created", from.at("created").text()},
                    {"command", from.at("command").text()},
                    {"host", context.at("host").text()}};
    for (auto const* name : {"processor", "cores", "load", "load_before"})
        if (context.has(name)) out[name] = context.at(name).value();
    std::optional<machine_load> load;
    if (from.has("load")) load = read_load(from.at("load"));
    out["busy"] = load && load->crowded();
    out["busy_text"] = load ? fmt::format("{} the runs {}", load->crowded_before() ? "Before" : "During", crowd_text(*load)) : "";
    out["context"] = context_of(from, load ? &*load : nullptr, file);
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
