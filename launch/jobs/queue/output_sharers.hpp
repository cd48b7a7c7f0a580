// Finds jobs that write to the same file, to tell whose output a file without the job's number in its name holds.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace muster {

/// Holds what Slurm's records say about a job and the file that it writes to.
struct output_sharers {
    bool has_started = false;        ///< the job has started; false also if Slurm does not know it
    bool has_ended = false;          ///< the job has ended; false also if Slurm does not know it
    std::time_t started_at = 0;      ///< 0: not known
    bool is_first = true;            ///< no other known job had begun the file before it
    std::string later, later_start;  ///< the last job that began the file after it, and when; or empty
    std::string before;              ///< a job that began the file before it and still ran then; or empty
    bool operator==(output_sharers const&) const = default;
};

/// Reads the records of all jobs (`scontrol -o show job`) for the job `raw_id`, whose file is `path`. Pure.
output_sharers find_output_sharers(std::string_view records, std::string_view raw_id, std::string_view path);

/// Returns whether the path contains the number of the job, or of its array, so that no other job writes there. Pure.
bool has_own_name(std::string_view path, std::string_view shown_id, std::string_view raw_id);

/// Returns the path's file with %j before its ending: "train-%j.out" of "/home/me/train.out". Pure.
std::string with_own_name(std::string_view path);

}  // namespace muster
