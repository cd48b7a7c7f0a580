// An agreement: what the ranks will do next with their requests of one name, or why they cannot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/exchange/request/exchange_request.hpp"

namespace muster {

struct agreement {
    exchange_request what;  ///< as the lowest rank that announced it put it
    std::vector<std::int64_t>
        numbers;  ///< allgather: rows of each rank, for one tensor after the other; alltoall: rows from rank r to s at [r * ranks + s]
    std::string fault;          ///< not empty: an error on every rank
    std::vector<int> culprits;  ///< of the fault: the ranks that differ from the lowest, or that have left
    int last = -1;              ///< join: the rank that joined last
    bool whole = true;          ///< no rank was joined: may be cached
    bool operator==(agreement const&) const = default;
};

}  // namespace muster
