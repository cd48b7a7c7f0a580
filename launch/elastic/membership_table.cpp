// The table of the transitions of one member.
#include <array>

#include "launch/elastic/membership.hpp"
#include "launch/elastic/membership_guards.hpp"

namespace muster::membership {

std::vector<transition> const& transitions() {
    using enum member_state;
    using enum member_event;
    using act = member_action;
    static std::vector<transition> const rows{
        // before it joins
        {coming, says_hello, waiting, act::welcome},
        {coming, is_unneeded, unneeded, act::kill},
        {coming, is_overdue, overdue, act::kill},
        {waiting, comes_in, working, act::none},
        {waiting, is_unneeded, unneeded, act::kill},
        {waiting, is_dismissed, leaving, act::dismiss},
        {coming, ends_well, gone, act::stop_awaiting},
        {coming, fails, gone, act::stop_awaiting},
        {coming, is_lost_with_host, gone, act::stop_awaiting},
        {waiting, ends_well, gone, act::stop_awaiting},
        {waiting, fails, gone, act::stop_awaiting},
        {waiting, is_lost_with_host, gone, act::stop_awaiting},
        {unneeded, ends_well, gone_unneeded, act::stop_awaiting},
        {unneeded, fails, gone_unneeded, act::stop_awaiting},
        {unneeded, is_lost_with_host, gone_unneeded, act::stop_awaiting},
        {overdue, ends_well, gone, act::stop_awaiting},
        {overdue, fails, gone, act::stop_awaiting},
        {overdue, is_lost_with_host, gone, act::stop_awaiting},
        // as a member
        {started, says_hello, asking, act::answer},
        {asking, is_answered, working, act::none},
        {working, announces, working, act::note_announcement},
        {asking, announces, working, act::note_announcement},  // it was answered before it asked again
        {working, wants_next, wanting, act::note_wish},
        {asking, wants_next, wanting, act::note_wish},
        {working, wants_old, working, act::tell_generation},
        {wanting, wants_old, wanting, act::tell_generation},
        {working, says_hello, asking, act::answer},  // the rank starts another program
        {wanting, says_hello, asking, act::answer},
        {wanting, comes_in, working, act::none},
        {wanting, is_left_out, leaving, act::part},
        {started, is_condemned, condemned, act::kill},
        {asking, is_condemned, condemned, act::kill},
        {working, is_condemned, condemned, act::kill},
        {wanting, is_condemned, condemned, act::kill},
        // its end
        {started, ends_well, ended_well, act::note_departure},
        {asking, ends_well, ended_well, act::note_departure},
        {working, ends_well, ended_well, act::note_departure},
        {wanting, ends_well, ended_well, act::note_departure},
        {condemned, ends_well, ended_well, act::note_departure},
        {started, fails, lost, act::note_loss},
        {asking, fails, lost, act::note_loss},
        {working, fails, lost, act::note_loss},
        {wanting, fails, lost, act::note_loss},
        {condemned, fails, lost, act::note_loss},
        {started, is_lost_with_host, lost_with_host, act::note_loss},
        {asking, is_lost_with_host, lost_with_host, act::note_loss},
        {working, is_lost_with_host, lost_with_host, act::note_loss},
        {wanting, is_lost_with_host, lost_with_host, act::note_loss},
        {condemned, is_lost_with_host, lost_with_host, act::note_loss},
        {leaving, is_overdue, leaving, act::kill},
        {leaving, ends_well, gone, act::none},
        {leaving, fails, gone, act::none},
        {leaving, is_lost_with_host, gone, act::none},
    };
    return rows;
}

namespace {

using table = std::array<std::array<transition const*, member_events>, member_states>;

table make_table() {
    table all{};
    for (auto const& row : transitions()) all[static_cast<std::size_t>(row.from)][static_cast<std::size_t>(row.on)] = &row;
    return all;
}

}  // namespace

transition const* find_transition(member_state from, member_event on) {
    static table const all = make_table();
    auto const* const row = all[static_cast<std::size_t>(from)][static_cast<std::size_t>(on)];
    return row != nullptr && is_row_left_out(row - transitions().data()) ? nullptr : row;
}

std::string_view name_of(member_state state) {
    constexpr std::array<std::string_view, member_states> names{
        "coming",    "waiting", "unneeded",   "overdue", "started",        "asking", "working",      "wanting",
        "condemned", "leaving", "ended_well", "lost",    "lost_with_host", "gone",   "gone_unneeded"};
    return names[static_cast<std::size_t>(state)];
}

std::string_view name_of(member_event event) {
    constexpr std::array<std::string_view, member_events> names{
        "says hello",  "announces",  "wants next",   "wants old",    "is answered", "comes in", "is left out",
        "is unneeded", "is overdue", "is condemned", "is dismissed", "ends well",   "fails",    "is lost with host"};
    return names[static_cast<std::size_t>(event)];
}

std::string_view name_of(member_action action) {
    constexpr std::array<std::string_view, 12> names{
        "",     "welcome", "answer", "tell generation", "note announcement", "note wish",
        "kill", "dismiss", "part",   "stop awaiting",   "note departure",    "note loss"};
    return names[static_cast<std::size_t>(action)];
}

std::string_view name_of(guard which) {
    constexpr std::array<std::string_view, static_cast<std::size_t>(guard::count_)> names{"word is of present",
                                                                                          "nobody stopped",
                                                                                          "all want",
                                                                                          "spare runs",
                                                                                          "all asked",
                                                                                          "answer after end",
                                                                                          "looks from loss on",
                                                                                          "looks in init",
                                                                                          "stopped for two looks",
                                                                                          "late after ask",
                                                                                          "tells of failure",
                                                                                          "tells losses",
                                                                                          "tells again",
                                                                                          "waits for judgement",
                                                                                          "within resets",
                                                                                          "sync unless at commit",
                                                                                          "grows at commit only",
                                                                                          "state comes first",
                                                                                          "wishes end at begin",
                                                                                          "offers again",
                                                                                          "offers again at hello",
                                                                                          "offers stopped later",
                                                                                          "room for newcomers",
                                                                                          "newcomers together",
                                                                                          "dismisses at close",
                                                                                          "silent when closed",
                                                                                          "looks go on",
                                                                                          "place is free once",
                                                                                          "faults change no hosts",
                                                                                          "tells of script's end"};
    return names[static_cast<std::size_t>(which)];
}

}  // namespace muster::membership
