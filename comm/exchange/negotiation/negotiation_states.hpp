// The states of a negotiator, as tables of what leads from one to another.
#pragma once

#include <array>
#include <cstdint>

namespace muster::detail {

/// The states of a negotiator's cycle.
enum class negotiation_state : std::uint8_t { idle, agreeing, gathering, running };
enum class negotiation_event : std::uint8_t {
    round_is_due,
    is_agreed,         ///< and no rank announces anything
    some_announce,     ///< … but some rank does
    is_announced,      ///< the announcements are here
    nothing_is_ready,  ///< to be run
    all_has_run,
};
enum class negotiation_effect : std::uint8_t { none, agree, gather, plan };

/// The rule for when waiting requests go into a round.
enum class request_pace : std::uint8_t {
    gather,  ///< once they are many, or the first has waited for long enough
    hurry,   ///< at once: somebody waits for them
    leave,   ///< nothing of this rank's follows them: it leaves once all else is done
};
enum class pace_event : std::uint8_t { is_waited_for, enters_round, leaves };

/// The yield of a round decides how soon the next one follows. Each value is more than the one before.
enum class round_yield : std::uint8_t { nothing, requests, results };

struct negotiation_row {
    negotiation_state from;
    negotiation_event on;
    negotiation_state to;
    negotiation_effect then;
};
struct pace_row {
    request_pace from;
    pace_event on;
    request_pace to;
};

inline constexpr auto negotiation_rows = [] {
    using enum negotiation_state;
    using enum negotiation_event;
    using then = negotiation_effect;
    return std::array{
        negotiation_row{idle, round_is_due, agreeing, then::agree},
        negotiation_row{agreeing, is_agreed, running, then::plan},
        negotiation_row{agreeing, some_announce, gathering, then::gather},
        negotiation_row{gathering, is_announced, running, then::plan},
        negotiation_row{running, nothing_is_ready, idle, then::none},
        negotiation_row{running, all_has_run, idle, then::none},
    };
}();

inline constexpr auto pace_rows = [] {
    using enum request_pace;
    using enum pace_event;
    return std::array{
        pace_row{gather, is_waited_for, hurry},
        pace_row{gather, leaves, leave},
        pace_row{hurry, enters_round, gather},
        pace_row{hurry, leaves, leave},
    };
}();

/// Returns the row of `rows` for that event in that state; null if the event changes nothing.
template <auto const& rows, typename State, typename Event>
constexpr auto find_row(State from, Event on) noexcept -> decltype(rows.data()) {
    for (auto const& row : rows)
        if (row.from == from && row.on == on) return &row;
    return nullptr;
}

}  // namespace muster::detail
