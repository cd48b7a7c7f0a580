// The negotiators of an exchange's process sets, and their lanes for device memory.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/exchange/batch/exchange_context.hpp"
#include "comm/exchange/negotiation/negotiator.hpp"
#include "comm/exchange/request/exchange_request.hpp"
#include "pmix/identity.hpp"

namespace muster::detail {

/// Sets are made, removed and given lanes by the negotiator of all ranks: making communicators blocks, so every rank must do it at the same
/// point of the order. Two ranks that were at different sets would wait for each other without end. The exchange's thread only.
class set_negotiators {
  public:
    struct hooks {
        std::function<bool(int)> caller_waits;  ///< as negotiator::hooks, as the next
        std::function<void(int)> forget_turns;
        std::function<void(std::vector<int> const& members, bool by_members)> on_made;
        std::function<void(int)> on_removed;
        std::function<void(std::string_view backend)> on_device;  ///< that device memory is reduced by
    };

    /// `shared` must outlive this.
    set_negotiators(exchange_context& shared, hooks calls) : shared_(shared), calls_(std::move(calls)) {}

    /// The set of all ranks. `places` names each rank's host and device.
    void start(communicator ranks, std::vector<std::string> places);
    communicator& ranks() { return all_.front()->ranks(); }

    /// To the negotiator of its set.
    void submit(pending_ptr one);
    /// Steps each. Whether all have ended. `hurry`: see negotiator.
    bool step(exchange_clock::time_point now, bool hurry, step_result& overall);

    void give_back(std::vector<pending_ptr>& into);
    void leak() noexcept;
    /// The last first, as communicators are made of earlier ones.
    void clear() noexcept;

  private:
    negotiator::hooks hooks_of_any_set() const;
    int make_set(communicator& ranks, std::vector<int> const& members, bool by_members);
    void remove_set(int set);
    void end_removed();
    void open_device(communicator& ranks);
    std::unique_ptr<device_lane> lane_over(std::vector<int> const& members);

    exchange_context& shared_;
    hooks calls_;
    std::vector<std::string> places_;
    std::vector<std::unique_ptr<negotiator>> all_;  // by number of the set; null: not a member
    std::vector<std::vector<int>> members_;         // as these; empty once a set is removed
    std::deque<int> ending_;                        // removed, in the order of that
    bool asked_for_device_ = false;
    device_lane* whole_lane_ = nullptr;  // of set 0
    std::string no_device_;              // why there will be none
};

// The process sets of an exchange, as the threads that submit see them.

/// Numbered from 0, all ranks. What is counted in each set is kept here too. Not thread safe.
class set_table {
  public:
    /// `who` is for messages and must outlive this.
    explicit set_table(identity const& who) : who_(who) {}

    /// `by_members`: they alone made it, and remove it.
    void add(std::vector<int> members, bool by_members);
    /// Throws errc::usage unless there is such a set and nobody has closed it.
    void check(int set) const;
    std::vector<int> const& members(int set) const;  ///< throws as check
    /// Those that this rank is a member of and that are not removed.
    std::vector<int> of_this_rank() const;

    /// Nothing can be submitted to it any more. The ranks whose consent it takes to remove it.
    std::vector<int> const& close(int set);
    /// Removing it has failed: it goes on.
    void reopen(int set);
    void remove(int set);

    /// How many unnamed requests of that kind there were in it.
    unsigned take_turn(exchange_kind kind, int set) { return turns_[{kind, set}]++; }
    /// They begin anew.
    void forget_turns(int set);
    /// How many messages with this tag were sent to, or received from, that rank of the set before.
    std::uint64_t count_message(int set, int peer, int tag, bool sends) { return messages_[{set, peer, tag, sends}]++; }

  private:
    enum class standing { open, closing, removed };
    struct process_set {
        std::vector<int> members;
        bool by_members = false;
        standing is = standing::open;
    };
    process_set& at(int set) { return sets_.at(static_cast<std::size_t>(set)); }

    identity const& who_;
    std::vector<process_set> sets_;
    std::map<std::pair<exchange_kind, int>, unsigned> turns_;
    std::map<std::tuple<int, int, int, bool>, std::uint64_t> messages_;
};

}  // namespace muster::detail
