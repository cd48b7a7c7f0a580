// The file that a rank's flight recorder leaves: the rank's last operations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

/// One recorded operation. `sequence` counts the operations of a process set in the order in which all its ranks do them, so
/// equal numbers mean the same operation on all.
struct flight_record {
    std::uint64_t sequence = 0;
    int set = 0;
    std::string kind;  ///< "allreduce", …
    std::uint64_t bytes = 0;
    std::int64_t started_us = 0;   ///< since the epoch (UTC)
    std::int64_t finished_us = 0;  ///< 0: it has not finished
    std::string name;              ///< "" for muster's own operations
    bool operator==(flight_record const&) const = default;
};

/// The last operations of a rank. `waiting` names the requests submitted and not agreed on, with the missing ranks, if known.
struct flight_dump {
    int generation = 0;
    int rank = 0;
    int ranks = 1;
    std::string host;
    std::string reason;
    std::vector<int> culprits;
    std::vector<flight_record> records;  ///< the oldest first
    std::vector<std::string> waiting;
    bool operator==(flight_dump const&) const = default;
};

/// Returns the dump as JSON (schema "muster.flight/1").
std::string to_json(flight_dump const& dump);

/// Reads such JSON. Throws errc::invalid_data naming `origin` and what is wrong.
flight_dump parse_flight_dump(std::string const& text, std::string const& origin);

/// Writes FOLDER/flight-RANK.json (rank_file.hpp), and makes the folder if necessary; returns the path. Throws errc::system.
std::string write_flight_dump(flight_dump const& dump, std::string const& folder);

}  // namespace muster
