// The process sets of an exchange, as the threads that submit see them.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/exchange/request/exchange_request.hpp"
#include "pmix/identity.hpp"

namespace muster::detail {

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
