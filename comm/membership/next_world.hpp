// The making of the world of the next generation; tries again if ranks are lost meanwhile.
#pragma once

#include <optional>
#include <utility>

#include "comm/backend/comm_error.hpp"
#include "comm/backend/keep_forever.hpp"
#include "comm/membership/member_link.hpp"

namespace muster {

/// A rank sends this when it wants the next generation.
struct member_standing {
    bool has_state = false;
    bool at_commit = false;
};

inline constexpr duration usual_reform_deadline{600};
/// A rank waits this long for the launcher to report a rank that others have missed first.
inline constexpr duration word_patience{0.5};

/// Returns whether a failure is one of other ranks, so that the remaining ranks may form a world.
inline bool is_of_others(comm_error const& problem) {
    return problem.code() == errc::peer_failed || problem.code() == errc::timeout;
}

/// A generation, and what make() has made for it; empty if this rank has no part in it.
template <typename Made>
struct next_world {
    elastic::generation now;
    std::optional<Made> made;
};

/// Waits for the next generation and calls `make` in it; if that fails because ranks are lost, waits for the one after it. Throws what member_link::reform
/// throws, and what `make` throws for another reason, or five times without a loss.
template <typename Make>
auto make_next_world(member_link& link, member_standing standing, duration deadline, Make const& make)
    -> next_world<decltype(make())> {
    constexpr int most_vain_tries = 5;
    for (int vain = 0;; standing.at_commit = false) {
        auto now = link.reform(standing.has_state, standing.at_commit, deadline);
        detail::release_remains();
        if (now.who.rank < 0) return {std::move(now), std::nullopt};
        try {
            return {now, make()};
        } catch (comm_error const& problem) {
            if (!is_of_others(problem)) throw;
            if (!link.is_broken(now.number, word_patience) && ++vain == most_vain_tries) throw;
        }
    }
}

}  // namespace muster
