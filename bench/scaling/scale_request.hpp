// A request of `muster-bench scale`: reads its options.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/command/given_options.hpp"
#include "bench/study/expectation.hpp"
#include "bench/study/study.hpp"

namespace muster {

/// By what a study is judged beyond its table; `report` takes the same.
struct study_demands {
    std::vector<expectation> expectations;
    std::string baseline;  ///< a results.json; "" where there is none
    double tolerance = 0.05;
};

struct scale_request {
    study_plan plan;
    std::string name;
    std::string muster;
    std::filesystem::path folder;
    study_demands demands;
    bool strict = false, fresh = false, retry = false, html = true;
};

std::span<option_row const> scale_option_rows() noexcept;

/// Makes the folder. Throws errc::usage (parse_error with a caret where a text does not parse), errc::not_found, errc::io.
scale_request read_scale_request(given_options const& given);

/// Reads --expect, --baseline and --tolerance. Throws parse_error (errc::usage).
study_demands read_study_demands(given_options const& given);

}  // namespace muster
