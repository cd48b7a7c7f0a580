// A request of `muster-bench scale`: reads its options.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/command/given_options.hpp"
#include "base/environment.hpp"
#include "bench/study/study.hpp"
#include "bench/study/study_demands.hpp"

namespace muster {

inline constexpr int most_repeats = 1000;

/// The options that go with `--submit`.
struct submit_request {
    bool wanted = false, wait = false, collect_only = false, dry_run = false;
    std::vector<std::string> options;  ///< of muster submit
};

struct scale_request {
    study_plan plan;
    std::string name;
    std::string muster;
    std::filesystem::path folder;
    study_demands demands;
    std::vector<int> only;  ///< the numbers of ranks whose runs are made here; empty: all
    submit_request submit;
    bool strict = false, fresh = false, retry = false;
};

std::span<option_row const> scale_option_rows() noexcept;

/// Makes the folder. Throws errc::usage (parse_error with a caret where a text does not parse), errc::not_found, errc::io.
scale_request read_scale_request(given_options const& given, environment const& variables);

/// The study of a request before its first run, begun now on this machine by the command `line`.
study study_of(scale_request const& request, std::string const& line);

}  // namespace muster
