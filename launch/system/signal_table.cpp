#include "launch/system/signal_table.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "launch/system/signals.hpp"

namespace muster {

namespace {

using enum signal_deed;

constexpr std::array columns{SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP, SIGCONT, SIGPIPE};

struct kind_row {
    process_kind kind;
    std::string_view name;
    std::array<signal_deed, columns.size()> deeds;
};

// An agent leaves TERM to its shims once it has any. HUP: a remote shell may end before its agent. TSTP stops a process together
// with its ranks.
// clang-format off
constexpr kind_row rows[] = {
    //                                              CHLD   INT      TERM     HUP      QUIT     USR1     USR2     ALRM     TSTP     CONT   PIPE
    {process_kind::launcher,     "launcher",       {taken, taken,   taken,   taken,   taken,   taken,   taken,   taken,   taken,   taken, ignored}},
    {process_kind::guardian,     "guardian",       {taken, taken,   taken,   taken,   taken,   taken,   taken,   taken,   taken,   taken, usual}},
    {process_kind::starter,      "starter",        {taken, ignored, taken,   ignored, ignored, ignored, ignored, ignored, usual,   usual, ignored}},
    {process_kind::remote_shell, "remote shell",   {usual, usual,   usual,   usual,   usual,   ignored, ignored, ignored, usual,   usual, usual}},
    {process_kind::pbs_shell,    "PBS' remote shell", {usual, ignored, ignored, usual, usual,   ignored, ignored, ignored, usual,   usual, usual}},
    {process_kind::agent,        "agent",          {taken, ignored, taken,   ignored, ignored, ignored, ignored, ignored, usual,   usual, ignored}},
    {process_kind::shim,         "shim",           {taken, taken,   taken,   taken,   taken,   taken,   taken,   taken,   usual,   taken, ignored}},
    {process_kind::shim_guard,   "shim's guard",   {taken, taken,   taken,   taken,   taken,   taken,   taken,   taken,   taken,   taken, usual}},
    {process_kind::keeper,       "keeper",         {usual, ignored, ignored, ignored, ignored, ignored, ignored, ignored, ignored, usual, ignored}},
    {process_kind::keepers,      "keepers' leader", {usual, ignored, ignored, ignored, ignored, ignored, ignored, ignored, ignored, usual, ignored}},
    {process_kind::probe,        "probe",          {usual, usual,   usual,   usual,   usual,   ignored, ignored, ignored, usual,   usual, ignored}},
    {process_kind::discovery,    "discovery",      {usual, usual,   usual,   usual,   usual,   ignored, ignored, ignored, usual,   usual, usual}},
};
// clang-format on

kind_row const& row_of(process_kind kind) noexcept {
    return *std::find_if(std::begin(rows), std::end(rows), [kind](kind_row const& row) { return row.kind == kind; });
}

std::vector<int> signals_with(process_kind kind, signal_deed deed) {
    std::vector<int> found;
    std::copy_if(columns.begin(), columns.end(), std::back_inserter(found), [&](int s) { return deed_of(kind, s) == deed; });
    return found;
}

}  // namespace

signal_deed deed_of(process_kind kind, int signal_number) noexcept {
    auto const column = std::ranges::find(columns, signal_number);
    return column == columns.end() ? usual : row_of(kind).deeds[static_cast<std::size_t>(column - columns.begin())];
}

std::vector<process_kind> process_kinds() {
    std::vector<process_kind> all;
    for (auto const& row : rows) all.push_back(row.kind);
    return all;
}

std::vector<int> tabled_signals() {
    return {columns.begin(), columns.end()};
}

std::string_view name_of(process_kind kind) noexcept {
    return row_of(kind).name;
}

std::vector<int> taken_signals(process_kind kind) {
    return signals_with(kind, taken);
}

std::vector<int> ignored_signals(process_kind kind) {
    return signals_with(kind, ignored);
}

void ignore_signals(process_kind kind) noexcept {
    for (int const s : columns)
        if (deed_of(kind, s) == ignored) ::signal(s, SIG_IGN);
}

std::vector<int> signals_to_hold() {
    auto held = taken_signals(process_kind::launcher);
    std::erase_if(held, [](int s) { return ends_the_run(s) || s == SIGCHLD || s == SIGTSTP || s == SIGCONT || is_ignored(s); });
    return held;
}

}  // namespace muster
