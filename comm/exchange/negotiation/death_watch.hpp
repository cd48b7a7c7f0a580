// A death watch finds ranks that keep an operation from finishing and have died.
#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "comm/exchange/request/pending_request.hpp"

namespace muster::detail {

class death_watch {
  public:
    /// The dead ranks, once they have been so for a while; asks seldom, and returns none between.
    std::vector<late_rank> find_dead(operation const& what, exchange_clock::time_point began, exchange_clock::time_point now);

  private:
    exchange_clock::time_point last_look_{}, dead_since_{};
};

}  // namespace muster::detail
