// An explanation says, from the flight recorders of all ranks, where each rank was and whom it blames.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/trace/flight_dump.hpp"

namespace muster {

/// Says, for people, where the ranks were in each generation, and in each process set with operations: "rank 3 (node2) is at allreduce #512 "grad.7",
/// all others at #513", or that all are at the same one. Names ranks that left no file, and the reasons that ranks gave (ranks with one reason
/// together). Pure; dumps in any order.
std::string explain(std::span<flight_dump const> dumps);

/// Reads FOLDER/flight-*.json, of all generations. Throws errc::not_found if there are no such files, errc::invalid_data naming the file.
std::vector<flight_dump> read_flight_dumps(std::string const& folder);

}  // namespace muster
