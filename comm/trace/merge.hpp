// A merge joins the timelines of all ranks into one, on rank 0's clock.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "comm/exchange/observe/flight_recorder.hpp"

namespace muster {

struct merge_summary {
    int files = 0;
    std::size_t events = 0;
    std::size_t dropped = 0;         ///< events that the ranks had no room for
    double worst_error_us = 0;       ///< of the clock offsets
    std::vector<std::string> ended;  ///< files that end early (their rank died), up to their last whole event
};

/// Writes the events of all files to `out` as one JSON array, times moved to rank 0's clock. Throws errc::invalid_data naming
/// file and line, errc::not_found, errc::system.
merge_summary merge_timelines(std::span<std::string const> files, std::string const& out);

/// FOLDER/timeline-*.json, by rank. Throws errc::not_found if there is none.
std::vector<std::string> find_timelines(std::string const& folder);

/// What merge_timelines does with one line: the event moved by `offset_us`; an "muster_clock" event sets `offset_us` (and
/// `error_us`) for those that follow. Empty for lines that hold no event ("[", "]"). Throws std::exception on a line that is no
/// event.
std::string shift_line(std::string_view line, double& offset_us, double& error_us);

// An explanation tells, from the flight recorders of all ranks, where each rank was and whom it blames.

/// Where the ranks were, for people; of each process set that has operations: "rank 3 (node2) is at allreduce #512 "grad.7", all
/// others at #513", or that all are at the same one. Ranks that left no file are named, as are the reasons that ranks gave (ranks
/// of one reason together). Pure; dumps in any order.
std::string explain(std::span<flight_dump const> dumps);

/// Reads FOLDER/flight-*.json. Throws errc::not_found if there is none, errc::invalid_data naming the file.
std::vector<flight_dump> read_flight_dumps(std::string const& folder);

}  // namespace muster
