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

inline constexpr int whole_host = -1;  ///< in place of a slot's index

/// How long a slot that failed stays idle: `least_s` * 2^n after its failure n (from 0), and up to `least_s` more by chance, but never more than `most_s`.
struct cool_down_range {
    double least_s = 5;
    double most_s = 300;
    bool operator==(cool_down_range const&) const = default;
};

/// Plain values, pure functions. Times are in seconds on one clock that only goes forward.
struct host_pool {
    /// A slot, or (whole_host) all of a host.
    struct cool_down {
        slot at;
        int failures = 0;
        double until_s = 0;
        bool operator==(cool_down const&) const = default;
    };

    std::vector<pool_host> hosts = {};  ///< in the order in which they were first seen
    std::vector<cool_down> cooling = {};
    bool operator==(host_pool const&) const = default;

    /// Takes the hosts that there are now. Known ones keep their places, new ones come last, and one that is gone loses its place. What cools down goes on to, also
    /// while its host is gone. Returns whether anything has changed.
    bool take(std::vector<pool_host> const& found);

    /// A rank failed there. Where all slots of its host cool down at once, the host does. `chance`: from 0 to 1. A failure long after the last one
    /// counts as a first one.
    void note_failure(slot const& at, cool_down_range const& range, double now_s, double chance);
    /// The host was lost, or its agent failed.
    void note_lost(std::string const& host, cool_down_range const& range, double now_s, double chance);

    /// Members have these slots now, whichever failed, and so the failed ones are others of their hosts: the last free ones.
    void make_room_for(std::vector<member> const& members, double now_s);

    /// How long, in seconds, it or its host cools down yet; 0: it does not.
    double time_left(slot const& at, double now_s) const;
    bool is_cooling(slot const& at, double now_s) const;
    /// Host by host.
    std::vector<slot> all() const;
    std::vector<slot> usable(double now_s) const;
    /// When the next slot of a host that is there has cooled down; nothing where none cools.
    std::optional<double> next_free_s(double now_s) const;
    /// "a: 2 slots, b: 1 of 2 slots (the others cool down for 12 s)", or "no host".
    std::string describe(double now_s) const;
};

/// What makes another generation worth while: members whose slot is gone from the pool, or free slots while there are fewer than `most` members. Empty:
/// nothing. Slots that cool down are not free. Pure.
std::string find_host_news(host_pool const& pool, std::vector<member> const& members, int most, double now_s);

/// What a run that goes on in place makes of the hosts that there are.
struct host_change {
    std::vector<slot> start = {};  ///< newcomers are started there
    std::vector<slot> end = {};    ///< newcomers there have not come in, and are not wanted any more
    std::vector<slot> leave = {};  ///< members there leave
    bool operator==(host_change const&) const = default;
};

/// `coming`: slots of processes that are to become members; `busy`: of others that have not ended. Newcomers are started on free slots, in the pool's order, while
/// members that stay and newcomers are fewer than `most`. Pure.
host_change find_host_change(host_pool const& pool, std::vector<member> const& members, std::vector<slot> const& coming,
                             std::vector<slot> const& busy, int most, double now_s);

/// The members that can be in the next generation, and those of the pool's slots that cannot be used, as next_generation() takes them. Pure.
generation_events lost_in_pool(host_pool const& pool, std::vector<member> const& members, double now_s);

}  // namespace muster
