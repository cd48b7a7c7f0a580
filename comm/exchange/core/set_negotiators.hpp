// The negotiators of an exchange's process sets, and the lanes of these sets for device memory.
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

/// The negotiator of all ranks makes and removes sets and gives them lanes: making communicators blocks, so every rank must do it at the
/// same point of the order. Two ranks at different sets would wait for each other without end. The exchange's thread only.
class set_negotiators {
  public:
    struct hooks {
        std::function<bool(int)> caller_waits;  ///< see negotiator::hooks, as for the next
        std::function<void(int)> forget_turns;
        std::function<void(std::vector<int> const& members, bool by_members)> on_made;
        std::function<void(int)> on_removed;
        std::function<void(std::string_view backend)> on_device;  ///< the backend for device memory
    };

    /// `shared` must outlive this.
    set_negotiators(exchange_context& shared, hooks calls) : shared_(shared), calls_(std::move(calls)) {}

    /// Starts the set of all ranks. `places` names each rank's host and device.
    void start(communicator ranks, std::vector<std::string> places);
    communicator& ranks() { return all_.front()->ranks(); }

    /// Hands the request to the negotiator of its set.
    void submit(pending_ptr one);
    /// Steps each negotiator; returns whether all have ended. `hurry`: see negotiator.
    bool step(exchange_clock::time_point now, bool hurry, step_result& overall);

    void give_back(std::vector<pending_ptr>& into);
    void leak() noexcept;
    /// Destroys the last one first, since communicators are made of earlier ones.
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
    std::vector<std::vector<int>> members_;         // in the same order; empty once a set is removed
    std::deque<int> ending_;                        // removed sets, in the order of their removal
    bool asked_for_device_ = false;
    device_lane* whole_lane_ = nullptr;  // of set 0
    std::string no_device_;              // the reason why there will be none
};

// The process sets of an exchange, as the threads that submit see them.

/// Sets are numbered from 0, which has all ranks. The table also keeps the counts of each set. Not thread safe.
class set_table {
  public:
    /// `who` is for messages and must outlive this.
    explicit set_table(identity const& who) : who_(who) {}

    /// `by_members`: only the members made it, and only they remove it.
    void add(std::vector<int> members, bool by_members);
    /// Throws errc::usage unless there is such a set and nobody has closed it.
    void check(int set) const;
    std::vector<int> const& members(int set) const;  ///< throws as check
    /// Returns the sets that this rank is a member of and that are not removed.
    std::vector<int> of_this_rank() const;

    /// Closes the set to further requests. Returns the ranks whose consent its removal needs.
    std::vector<int> const& close(int set);
    /// Opens the set again after its removal failed.
    void reopen(int set);
    void remove(int set);

    /// Returns how many unnamed requests of that kind there were in it.
    unsigned take_turn(exchange_kind kind, int set) { return turns_[{kind, set}]++; }
    /// Starts the counts of unnamed requests again.
    void forget_turns(int set);
    /// Returns how many messages with this tag were sent to, or received from, that rank of the set before.
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
