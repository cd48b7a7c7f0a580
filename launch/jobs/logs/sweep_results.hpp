// The results of a sweep (--each) side by side: the parameters of each job, the last value of each metric that it printed, and how it ended.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobscripts/each.hpp"
#include "launch/jobs/job_output.hpp"

namespace muster {

/// The last value of a metric, as it was printed.
struct metric_value {
    std::string name, value, unit;
    bool operator==(metric_value const&) const = default;
};

/// The last value of each metric in lines "muster-metric: NAME VALUE [UNIT]", in the order of the first ones; other lines do not count. Pure.
std::vector<metric_value> last_metrics(std::string_view text);

/// Those of a job: of the lowest rank that printed any, of the last of the runs in which one did. Of a long output its last MiB is read.
std::vector<metric_value> read_last_metrics(std::vector<std::string> const& run_folders);

/// One job of a sweep.
struct sweep_row {
    std::string task;                 ///< "12_3"
    std::vector<std::string> values;  ///< of each parameter
    std::vector<metric_value> metrics;
    std::string state;  ///< "COMPLETED", "FAILED, exit code 3"
    std::optional<int> exit_code;
    std::string folder;  ///< of its last run; empty: none yet
};

/// "3" of "12_3" and of "12[3].server": the place of a task in its array; nothing for other numbers. Pure.
std::optional<std::size_t> index_of_task(std::string_view id);

/// The record with the task's values in the name of its run folder. Pure.
std::optional<job_record> with_task_folder(std::optional<job_record> record, std::string_view id);

/// A row for each job of the sweep; `jobs` is what the scheduler still knows.
std::vector<sweep_row> sweep_rows(job_record const& record, std::vector<queued_job> const& jobs, job_file_finder& finder);

/// Pure.
std::string sweep_table(std::vector<each_parameter> const& each, std::vector<sweep_row> const& rows);
nlohmann::ordered_json json_of(std::vector<each_parameter> const& each, std::vector<sweep_row> const& rows);

}  // namespace muster
