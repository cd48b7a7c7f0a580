// Jobs that write to the same file: tells whose output a file holds that does not have the job's number in its name.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace muster {

/// What Slurm's records say of a job and the file that it writes to.
struct output_sharers {
    bool has_started = false;        ///< the job has; false too for one that Slurm does not know
    bool has_ended = false;          ///< the same
    std::time_t started_at = 0;      ///< 0: not known
    bool is_first = true;            ///< no other job that is known had begun the file before it
    std::string later, later_start;  ///< the job that was the last to begin the file after it, and when; empty: there is none
    std::string before;              ///< one that had begun the file before it, and still ran then; empty: there is none
    bool operator==(output_sharers const&) const = default;
};

/// From the records of all jobs (`scontrol -o show job`): of the job with the number `raw_id`, whose file is `path`. Pure.
output_sharers find_output_sharers(std::string_view records, std::string_view raw_id, std::string_view path);

/// Whether the path has the number of the job, or of its array, in it, so that no other job writes there. Pure.
bool has_own_name(std::string_view path, std::string_view shown_id, std::string_view raw_id);

/// The path's file with %j before its ending: "train-%j.out" of "/home/me/train.out". Pure.
std::string with_own_name(std::string_view path);

}  // namespace muster
