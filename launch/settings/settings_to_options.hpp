// Converts settings to the plain structs that the launcher works with.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/scheduler_sources.hpp"
#include "launch/settings/resolve_settings.hpp"
#include "launch/settings/run_options.hpp"
#include "launch/settings/setting.hpp"

namespace muster {

placement_request make_placement_request(settings_result const& given);
allocation_choice make_allocation_choice(settings_result const& given);
/// Throws errc::usage if there is no program.
run_options make_run_options(settings_result const& given);

/// Returns the words of a command line that give a setting these entries: "--env", "A=1", "--env", "B=2"; "--no-smt". Pure.
std::vector<std::string> words_of_setting(setting const& row, std::vector<std::string> const& entries);

// Checks and reads single values of settings.

std::optional<value_fault> check_cpus(std::string const& list);           ///< "24-31,56-63"
std::optional<value_fault> check_ports(std::string const& range);         ///< "40000-41000"
std::optional<value_fault> check_each(std::string const& entry);          ///< "lr=0.1,0.01"
std::optional<value_fault> check_index(std::string const& number);        ///< a whole number from 0
std::optional<value_fault> check_assignment(std::string const& text);     ///< "NAME" or "NAME=value"
std::optional<value_fault> check_restart_cause(std::string const& word);  ///< "3", "KILL", "node"
std::optional<value_fault> check_seconds(std::string const& number);      ///< 1 to 3600
std::optional<value_fault> check_exit_code(std::string const& number);    ///< 0 to 255
std::optional<value_fault> check_early_signal(std::string const& text);   ///< "USR1@120"

/// Returns the number of "USR1", "SIGUSR1" or "10"; nothing if there is no such signal.
std::optional<int> signal_number(std::string_view name);

/// Reads "USR1@120", "SIGTERM@5min". Throws parse_error (errc::usage) naming `origin`.
early_signal parse_early_signal(std::string const& text, std::string_view origin = "--signal-before-end");

/// Takes words that check_restart_cause accepts.
restart_policy make_restart_policy(int most, std::vector<std::string> const& causes);

/// Throws errc::usage naming the possible words.
scheduler_kind parse_scheduler_kind(std::string_view word);

}  // namespace muster
