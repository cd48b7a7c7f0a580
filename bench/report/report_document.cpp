#include "bench/report/report_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "bench/report/busbw_curves.hpp"
#include "bench/report/report_context.hpp"
#include "bench/report/study_summary.hpp"

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

/// The name, and where several studies have it, the file too.
std::vector<std::string> labels_of(report_input const& input) {
    std::vector<std::string> out;
    for (auto const& each : input.studies) {
        auto const same =
            std::ranges::count_if(input.studies, [&](auto const& o) { return o.results.name == each.results.name; });
        fs::path const file = each.file;
        auto const place = file.filename() == "results.json" && file.has_parent_path() ? file.parent_path() : file;
        out.push_back(same > 1 ? fmt::format("{} ({})", each.results.name, place.string()) : each.results.name);
    }
    return out;
}

report_json differences_of(report_input const& input) {
    auto out = report_json::array();
    if (input.studies.size() < 2) return out;
    std::vector<std::map<std::string, std::string>> all;
    std::vector<std::string> order;
    for (auto const& each : input.studies) {
        all.emplace_back();
        for (auto const& [name, value] : study_settings(each.results)) {
            all.back()[name] = value;
            if (std::ranges::find(order, name) == order.end()) order.push_back(name);
        }
    }
    for (auto const& name : order) {
        auto values = report_json::array();
        bool same = true;
        for (auto const& settings : all) {
            auto const found = settings.find(name);
            values.push_back(found == settings.end() ? "" : found->second);
            same &= values.back() == values.front();
        }
        if (!same) out.push_back({{"setting", name}, {"values", values}});
    }
    return out;
}

}  // namespace

report_input read_report_input(std::vector<std::string> const& paths) {
    report_input out;
    for (fs::path file : paths) {
        if (std::error_code ignored; fs::is_directory(file, ignored)) file /= "results.json";
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
                    {"differences", differences_of(input)},
                    {"busbw", input.busbw}};
    auto const labels = labels_of(input);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        auto summary = study_summary(input.studies[i].results, input.studies[i].file, input.studies[i].judged);
        summary["label"] = labels[i];
        out["studies"].push_back(summary);
    }
    return out;
}

}  // namespace muster
