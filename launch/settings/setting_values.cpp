#include "launch/settings/setting_values.hpp"

#include <fmt/format.h>
#include <signal.h>

#include "base/cpuset.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/system/signals.hpp"

namespace muster {

std::optional<value_fault> check_cpus(std::string const& list) {
    try {
        if (!cpuset::from_list(list).empty()) return std::nullopt;
    } catch (parse_error const&) {
    }
    return value_fault{0, fmt::format("'{}' is no list of hardware threads; write one such as 0-7,32-39", list)};
}

std::optional<value_fault> check_index(std::string const& number) {
    auto const value = parse_integer(number);
    if (value && *value >= 0 && *value < 1024) return std::nullopt;
    return value_fault{0, fmt::format("'{}' is no GPU; write its place in PCI order, from 0", number)};
}

std::optional<value_fault> check_assignment(std::string const& text) {
    if (text.empty() || text.front() == '=')
        return value_fault{0, fmt::format("'{}' names no variable; write NAME or NAME=VALUE", text)};
    return std::nullopt;
}

std::optional<int> signal_number(std::string_view name) {
    if (auto const number = parse_integer(name))
        return *number >= 1 && *number <= SIGRTMAX ? std::optional(static_cast<int>(*number)) : std::nullopt;
    if (name.starts_with("SIG")) name.remove_prefix(3);
    for (int number = 1; number < SIGRTMIN; ++number)
        if (auto const* known = signal_name(number); known != nullptr && name == known) return number;
    return std::nullopt;
}

namespace {

/// The exit code that a cause of --restart-on stands for.
std::optional<int> exit_code_of(std::string const& cause) {
    if (auto const code = parse_integer(cause))
        return *code >= 1 && *code <= 255 ? std::optional(static_cast<int>(*code)) : std::nullopt;
    auto const signal = signal_number(cause);
    return signal ? std::optional(128 + *signal) : std::nullopt;
}

}  // namespace

std::optional<value_fault> check_restart_cause(std::string const& word) {
    if (word == "node" || exit_code_of(word)) return std::nullopt;
    return value_fault{
        0, fmt::format("'{}' is no cause of a failure; write an exit code from 1 to 255, a signal (KILL) or node", word)};
}

std::optional<value_fault> check_seconds(std::string const& number) {
    auto const value = parse_integer(number);
    if (value && *value >= 1 && *value <= 3600) return std::nullopt;
    return value_fault{0, fmt::format("'{}' is no number of seconds from 1 to 3600; write LO,HI, such as 5,300", number)};
}

std::optional<value_fault> check_exit_code(std::string const& number) {
    auto const code = parse_integer(number);
    if (code && *code >= 0 && *code <= 255) return std::nullopt;
    return value_fault{0, fmt::format("'{}' is no exit code; write one from 0 to 255", number)};
}

restart_policy make_restart_policy(int most, std::vector<std::string> const& causes) {
    restart_policy policy{.most = most};
    for (auto const& cause : causes) {
        policy.on_node = policy.on_node || cause == "node";
        if (auto const code = exit_code_of(cause)) policy.codes.push_back(*code);
    }
    return policy;
}

std::optional<value_fault> check_early_signal(std::string const& text) {
    auto const at = text.find('@');
    if (at == std::string::npos)
        return value_fault{0, fmt::format("'{}' has no time; write SIGNAL@TIME, such as USR1@120 or TERM@5min", text)};
    if (!signal_number(std::string_view(text).substr(0, at)))
        return value_fault{0, fmt::format("there is no signal '{}'; write USR1, TERM or a number", text.substr(0, at))};
    try {
        parse_duration(text.substr(at + 1));
    } catch (parse_error const& e) {
        return value_fault{at + e.column(), "no time follows the @; write SIGNAL@TIME, such as USR1@120 or TERM@5min"};
    }
    return std::nullopt;
}

early_signal parse_early_signal(std::string const& text, std::string_view origin) {
    if (auto const fault = check_early_signal(text)) throw_fault(origin, text, *fault);
    auto const at = text.find('@');
    return {*signal_number(std::string_view(text).substr(0, at)), parse_duration(text.substr(at + 1), origin)};
}

scheduler_kind parse_scheduler_kind(std::string_view word) {
    constexpr scheduler_kind kinds[]{scheduler_kind::slurm, scheduler_kind::pbs,      scheduler_kind::cobalt, scheduler_kind::lsf,
                                     scheduler_kind::flux,  scheduler_kind::hostfile, scheduler_kind::local};
    std::vector<std::string> names;
    for (auto const kind : kinds) {
        if (to_string(kind) == word) return kind;
        names.emplace_back(to_string(kind));
    }
    throw error(errc::usage, fmt::format("--scheduler: '{}' is not one of {}", word, join(names, ", ")));
}

}  // namespace muster
