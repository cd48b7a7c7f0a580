// A coordinator collects the ranks' announcements of requests until all ranks have announced them.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/exchange/request/exchange_request.hpp"

namespace muster {

/// Something that some ranks wait for.
struct incomplete {
    exchange_request what;
    std::vector<int> missing;
};

/// A plain value: every rank keeps one, feeds it the same announcements in the same order and so draws the same conclusions;
/// nothing is decided by one rank for the others. Not thread safe.
class coordinator {
  public:
    /// `hosts`, one for each rank, are for messages.
    explicit coordinator(std::vector<std::string> hosts);

    /// Rank `from` announces a request. A request that it has announced before and that is not ready yet is replaced.
    void announce(int from, exchange_request what);

    /// Returns what the announcements since the last call have made ready, in an order that depends on nothing else. A mismatch
    /// becomes an agreement with a fault once every rank has announced its request, so that all learn of it.
    std::vector<agreement> take_ready();

    /// An agreement from a cache, seen in the light of who has joined meanwhile.
    agreement revise(agreement cached) const;

    bool is_joined(int rank) const { return joined_.at(static_cast<std::size_t>(rank)); }
    bool anyone_joined() const noexcept { return joined_count_ > 0; }
    bool anyone_left() const noexcept { return left_count_ > 0; }
    bool all_left() const noexcept { return left_count_ == ranks(); }

    /// Returns the requests that some ranks have announced, but not all, in order of name.
    std::vector<incomplete> waiting() const;

    /// Says what every rank waits in, as far as it has announced it: "rank 0 (n0) waits in allreduce of "a" since 22:10:03.120450 UTC; rank 1 (n1) …".
    std::string who_waits_in_what() const;

    /// All ranks of that process set wait, each in what the others have not announced: an agreement on that fault. Forgets all that was announced. At fault
    /// are the ranks that wait in something else than most do.
    agreement never_meet(int set);

    int ranks() const noexcept { return static_cast<int>(hosts_.size()); }

  private:
    struct entry {
        std::vector<std::optional<exchange_request>> of;  // by rank
        int count = 0;
    };

    std::string who(int rank) const;
    std::vector<exchange_request const*> announced_by(std::size_t rank) const;
    std::string who(std::span<int const> ranks) const;
    static bool needs_no_consent(entry const& each);
    bool is_complete(entry const& each) const;
    std::vector<bool> parties_of_any(entry const& each) const;
    std::vector<int> missing_of(entry const& each) const;
    bool a_party_has_left(entry const& each) const;
    agreement conclude(entry const& all) const;
    void find_mismatch(entry const& all, int lowest, agreement& result) const;
    void gather_numbers(entry const& all, agreement& result) const;
    void apply_join(agreement& result) const;
    static exchange_request first_of(entry const& each);
    agreement refuse(exchange_request what) const;

    std::vector<std::string> hosts_;
    std::map<std::string, entry> entries_;
    std::vector<std::string> touched_;  // names that may have become ready, in order
    std::vector<bool> joined_, left_;
    int joined_count_ = 0, left_count_ = 0;
    int last_to_join_ = -1;
    bool everything_touched_ = false;
};

}  // namespace muster
