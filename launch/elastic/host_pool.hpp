// The pool of hosts that come and go: which of their slots a run may use, and which cool down after a failure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/elastic/generation.hpp"

namespace muster {

struct pool_host {
    std::string name;
    int slots = 1;
    bool operator==(pool_host const&) const = default;
};

inline constexpr int whole_host = -1;  ///< stands for a slot's index

/// Says how long a failed slot stays idle: `least_s` * 2^n after its failure n (from 0), plus a random time of at most `least_s`,
/// but never more than `most_s`.
struct cool_down_range {
    double least_s = 5;
    double most_s = 300;
    bool operator==(cool_down_range const&) const = default;
};

/// Holds plain values; its functions are pure. Times are in seconds on one clock that only goes forward.
struct host_pool {
    /// A slot, or a whole host (whole_host).
    struct cool_down {
        slot at;
        int failures = 0;
        double until_s = 0;
        bool operator==(cool_down const&) const = default;
    };

    std::vector<pool_host> hosts = {};  ///< in the order in which they were first seen
    std::vector<cool_down> cooling = {};
    bool operator==(host_pool const&) const = default;

    /// Takes the present hosts. Known ones keep their places, new ones come last, and missing ones lose their place. Cool-downs
    /// continue even while their host is missing. Returns whether anything has changed.
    bool take(std::vector<pool_host> const& found);

    /// Notes that a rank failed on the slot. If all slots of its host cool down at once, the host does. `chance` is from 0 to 1.
    /// A failure long after the last one counts as a first one.
    void note_failure(slot const& at, cool_down_range const& range, double now_s, double chance);
    /// Notes that the host was lost, or that its agent failed.
    void note_lost(std::string const& host, cool_down_range const& range, double now_s, double chance);

    /// Notes that members have these slots now, whichever slots failed: the failed ones become the last free slots of their
    /// hosts.
    void make_room_for(std::vector<member> const& members, double now_s);

    /// Returns the seconds for which it or its host still cools down; 0 if neither does.
    double time_left(slot const& at, double now_s) const;
    bool is_cooling(slot const& at, double now_s) const;
    /// Returns the slots host by host.
    std::vector<slot> all() const;
    std::vector<slot> usable(double now_s) const;
    /// Returns when the next slot of a present host will have cooled down; nothing if none is cooling.
    std::optional<double> next_free_s(double now_s) const;
    /// Returns "a: 2 slots, b: 1 of 2 slots (the others cool down for 12 s)", or "no host".
    std::string describe(double now_s) const;
};

/// Returns what makes another generation worthwhile: members whose slot has left the pool, or free slots while there are fewer
/// than `most` members. Returns an empty text if nothing does. Slots that cool down are not free. Pure.
std::string find_host_news(host_pool const& pool, std::vector<member> const& members, int most, double now_s);

/// Says what a run that goes on in place does with the present hosts.
struct host_change {
    std::vector<slot> start = {};  ///< where newcomers start
    std::vector<slot> end = {};    ///< where newcomers that have not joined are no longer wanted
    std::vector<slot> leave = {};  ///< where members leave
    bool operator==(host_change const&) const = default;
};

/// `coming`: slots of processes that will become members; `busy`: slots of other processes that have not ended. Newcomers start
/// on free slots, in the pool's order, while there are fewer than `most` staying members and newcomers. Pure.
host_change find_host_change(host_pool const& pool, std::vector<member> const& members, std::vector<slot> const& coming,
                             std::vector<slot> const& busy, int most, double now_s);

/// Returns the members that cannot be in the next generation and the unusable slots of the pool, as next_generation() takes them.
/// Pure.
generation_events lost_in_pool(host_pool const& pool, std::vector<member> const& members, double now_s);

}  // namespace muster
