#include "bench/report/report_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/version.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr char const* what_to_give =
    "give the results.json that muster-bench scale wrote, its folder, or the --json of collectives";

/// Refuses a file of another command by its schema, before anything reports what it lacks of a study.
void refuse_other_schema(nlohmann::json const& document, std::string const& file) {
    if (!document.is_object() || !document.contains("schema") || !document.at("schema").is_string()) return;
    auto const schema = document.at("schema").get<std::string>();
    if (schema.starts_with("muster.results/")) return;
    throw_error(errc::invalid_data, "{}: holds '{}', of which there is no report; {}", file, without_controls(schema),
                what_to_give);
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
            add_busbw_tables(checked_json(document, file.string()), file.string(), out.busbw);
            continue;
        }
        refuse_other_schema(document, file.string());
        out.studies.push_back({read_study(document, file.string()), file.string()});
    }
    return out;
}

report_document gather_report(report_input const& input) {
    report_document out{std::string(version()), {}, study_differences(input.studies), input.busbw};
    auto const labels = labels_of(input);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        auto const& each = input.studies[i];
        out.studies.push_back(summarise_study(each.results, labels[i], each.file, each.judged));
    }
    return out;
}

}  // namespace muster
