// A watch over what a process set's ranks wait for too long: tensors that some have not submitted, ranks that have died.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "comm/backend/comm_error.hpp"
#include "comm/communicator.hpp"
#include "comm/exchange/batch/exchange_context.hpp"
#include "comm/exchange/negotiation/coordinator.hpp"
#include "comm/exchange/request/pending_request.hpp"

namespace muster::detail {

/// Looks seldom, and says who is at fault. What it refers to must outlive it. The exchange's thread only.
class overdue_watch {
  public:
    /// `places` names each rank's host and device, for messages.
    overdue_watch(communicator const& ranks, std::vector<std::string> const& places, coordinator const& all,
                  exchange_context& shared);

    /// The ranks that keep an operation from finishing and have been dead for a while; none between two looks.
    std::vector<late_rank> find_dead(operation const& what, exchange_clock::time_point began, exchange_clock::time_point now);
    comm_error death_error(std::string const& unfinished, std::vector<late_rank> const& dead) const;

    /// The error of a request whose deadline has passed. `late` are the ranks that this one's operation waits for. `stuck`: the round of
    /// negotiation does not end either, so that no rank has heard of what others have submitted since.
    comm_error deadline_error(pending_request const& unit, std::vector<late_rank> const& late, bool stuck) const;
    /// The ranks that have not announced it, as far as is known here.
    std::vector<int> missing_of(pending_request const& unit) const;

    /// Returns whether to look for stalls again.
    bool is_time_for_stalls(exchange_clock::time_point now);
    /// It waits for so long that all ranks are to see who is missing: a cached request is then announced in full.
    bool is_stalling(pending_request const& unit, exchange_clock::time_point now) const {
        return now - unit.submitted > tell_stall_;
    }
    /// Warns once of each request that is overdue; one of the ranks that wait does.
    void warn_of_stalls(std::unordered_map<std::string, pending_ptr> const& announced, exchange_clock::time_point now) const;

  private:
    std::string name_of(int rank) const;  ///< "rank 2 (n1, GPU 0)"
    std::string describe_unit(pending_request const& unit) const;

    communicator const& ranks_;
    std::vector<std::string> const& places_;
    coordinator const& coordinator_;
    exchange_context& shared_;
    exchange_clock::duration tell_stall_;
    exchange_clock::time_point last_look_{}, dead_since_{}, last_stall_check_{};
};

}  // namespace muster::detail
