// Describes the failure of one rank to the user.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/units.hpp"
#include "launch/observe/memory_kills.hpp"

namespace muster {

/// The first failure of a run: the run ends because of it.
struct failure_report {
    std::string rank;        ///< see name_of_rank
    std::string what;        ///< "exited with code 3"
    duration lived{0};       ///< since the start
    std::size_t others = 0;  ///< ranks that end because of it
    std::string advice;      ///< one thing to do, or empty
    std::string earlier;     ///< "rank 1 on node2 had ended with code 0 before that", or empty
    std::string last_lines;  ///< those of its standard error
    bool quotes = true;      ///< shows the last lines; advice based on them is shown either way
};

/// Returns the report as lines: what happened, what to do, and what the rank wrote last.
std::string describe(failure_report const& failure);

/// Describes what is wrong with how a process ended.
struct end_fault {
    std::string what;
    int exit_code = 0;
    std::string advice;
    bool operator==(end_fault const&) const = default;
};

/// Explains a status of waitpid, with the kernel's counts of memory kills; returns nothing for exit code 0.
std::optional<end_fault> find_end_fault(int wait_status, memory_verdict memory = memory_verdict::unknown);

/// Returns whether SIGTERM, SIGKILL, SIGALRM or SIGHUP ended a process: a scheduler or an engine sends these to all of a job's
/// processes, e.g. at the end of its time, so the rank need not be the cause.
bool may_be_sent_to_all(int wait_status) noexcept;

}  // namespace muster
