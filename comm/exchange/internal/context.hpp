// What the parts of an exchange share.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "comm/exchange/exchange_options.hpp"
#include "comm/exchange/internal/pending.hpp"
#include "comm/observe/counters.hpp"
#include "comm/observe/flight_recorder.hpp"
#include "comm/observe/timeline.hpp"

namespace muster::detail {

using pending_ptr = std::shared_ptr<pending>;

/// What ends requests: takes their names out of the table of those in flight and wakes who waits.
class finisher {
  public:
    virtual void finish(std::span<pending_ptr const> ended) = 0;

  protected:
    ~finisher() = default;
};

/// Why nothing more can be done.
struct failure_text {
    errc code = errc::peer_failed;
    std::string message;
    std::vector<int> culprits;
};

struct context {
    exchange_options options;
    counters& count;
    flight_recorder& recorder;
    timeline& trace;
    finisher& finished;
};

/// Marks a request as failed; the finisher is still to be told.
inline void set_failed(pending& one, errc code, std::string const& fault, std::vector<int> const& culprits) {
    one.code = code;
    one.fault = fault;
    one.culprits = culprits;
    one.state.store(pending::phase::failed);
}

}  // namespace muster::detail
