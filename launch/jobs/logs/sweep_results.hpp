// Shows the results of a sweep (--each) side by side: the parameters of each job, the last value of each metric that it printed,
// and how it ended.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobscripts/each.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/samples/metric_line.hpp"

namespace muster {

/// Returns the last value of each metric in lines "muster-metric: NAME VALUE [UNIT]", in the order of their first lines; ignores
/// other lines. Pure.
std::vector<metric_value> last_metrics(std::string_view text);

/// Returns the last metrics of a job, from the lowest rank that printed any in the latest run that has any. Reads the last MiB of
/// a longer output.
std::vector<metric_value> read_last_metrics(std::vector<std::string> const& run_folders);

/// One job of a sweep.
struct sweep_row {
    std::string task;                 ///< "12_3"
    std::vector<std::string> values;  ///< one for each parameter
    std::vector<metric_value> metrics;
    std::string state;  ///< "COMPLETED", "FAILED, exit code 3"
    std::optional<int> exit_code;
    std::string folder;  ///< its last run's folder; empty: it has no run yet
};

/// Returns "3" of "12_3" and of "12[3].server", the index of a task in its array; nothing for other numbers. Pure.
std::optional<std::size_t> index_of_task(std::string_view id);

/// Returns the record with the task's values in the name of its run folder. Pure.
std::optional<job_record> with_task_folder(std::optional<job_record> record, std::string_view id);

/// Returns a row for each job of the sweep; `jobs` is what the scheduler still knows.
std::vector<sweep_row> sweep_rows(job_record const& record, std::vector<queued_job> const& jobs, job_file_finder& finder);

/// Both are pure.
std::string sweep_table(std::vector<each_parameter> const& each, std::vector<sweep_row> const& rows);
nlohmann::ordered_json json_of(std::vector<each_parameter> const& each, std::vector<sweep_row> const& rows);

}  // namespace muster
