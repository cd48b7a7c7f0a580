// links: muster::bench
// iterations: 3000
// Any bytes as a results.json: a study whose table, plots and page can be made, or a muster::error.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "bench/report/report_document.hpp"
#include "bench/report/report_json.hpp"
#include "bench/report/report_page.hpp"
#include "bench/report/report_text.hpp"
#include "bench/study/expectation.hpp"
#include "bench/study/scaling_table.hpp"
#include "bench/study/study.hpp"
#include "bench/tools/checked_json.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    try {
        auto const study = muster::read_study(muster::parse_json(text, "results.json"), "results.json");
        auto const rows = muster::scaling_rows(study);
        if (rows.empty() || muster::scaling_text(study).empty()) __builtin_trap();
        auto const document = muster::gather_report({{{study, "results.json"}}});
        auto const page = muster::report_html(document);
        if (muster::report_markdown(document).empty() || muster::report_csv(document).empty()) __builtin_trap();
        if (muster::to_json(document).empty()) __builtin_trap();
        if (page.find("<script") != std::string::npos) __builtin_trap();
        for (auto const* bound : {"speedup>=1", "wall_s[2]<3"}) muster::judge(muster::parse_expectation(bound), rows, study.plan);
        muster::compare_with_baseline(study, study, 0.05);
        muster::to_json(study).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    } catch (muster::error const& e) {
        if (std::string_view(e.what()).find("results.json") == std::string_view::npos) __builtin_trap();
    }
    return 0;
}
