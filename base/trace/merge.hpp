// A merge joins the timelines of all ranks and generations into one, on one clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/trace/rank_file.hpp"

namespace muster {

struct merge_summary {
    int files = 0;
    std::size_t events = 0;
    std::size_t dropped = 0;          ///< events that did not fit on the ranks
    double worst_error_us = 0;        ///< of the clock offsets
    std::vector<std::string> ended;   ///< files that end early (their rank died), up to their last whole event
    std::vector<std::string> losses;  ///< "generation 1: 3 ranks; rank 2 (node1) is lost", in order
};

/// Writes the events of all files to `out` as one JSON array, with times moved to the clock of rank 0 of the first generation. A process has one track
/// through all generations, named after its ranks. At the start of a later generation, a mark over all tracks says which ranks were lost. Throws
/// errc::invalid_data naming file and line, errc::not_found, errc::system.
merge_summary merge_timelines(std::span<found_rank_file const> files, std::string const& out);

/// Finds FOLDER/timeline-*.json. Throws errc::not_found if there are no such files.
std::vector<found_rank_file> find_timelines(std::string const& folder);

/// The first lines of a timeline: its rank, and the offset of its clock to rank 0's of its generation (muster_clock of timeline.hpp).
struct timeline_head {
    rank_file which;
    std::string host;
    long process = 0;  ///< its number on its host; 0 if the file does not have it
    double offset_us = 0, error_us = 0;
};

/// A process in the merged timeline has a numbered track.
struct timeline_track {
    std::int64_t number = 0;
    std::string name;
};

/// A plan of what a merge does with its files, which are in the order of time.
struct merge_plan {
    std::vector<timeline_track> tracks;  ///< of each file; files of one process have the same
    std::vector<double> shift_us;        ///< of each file
    struct mark {
        int generation = 0;
        std::string text;
    };
    std::vector<mark> marks;  ///< of each generation after the first
};

/// Joins the clocks of two generations over a host that has ranks in both; without such a host they are taken as they are. Pure.
merge_plan plan_merge(std::span<timeline_head const> heads);

/// Returns a line of a timeline for the merged one: the event moved by `shift_us` and on track `track`. Empty for lines without an event ("[", "]") and for
/// those that name the file's own track. Throws std::exception on a line that is not an event.
std::string move_line(std::string_view line, double shift_us, std::int64_t track);

}  // namespace muster
