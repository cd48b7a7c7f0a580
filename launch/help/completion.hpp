// Completion scripts for shells, written from the tables of commands and settings.
#pragma once

#include <string>
#include <string_view>

#include "launch/help/help.hpp"
#include "launch/settings/setting.hpp"

namespace muster {

/// The script for a shell. Pure.
std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

// The kinds of values that a shell can complete for an option.

enum class value_source { nothing, choices, files, folders, sites, queues, jobs, variables, hosts, interfaces, topologies };

inline value_source source_of(setting const& row) noexcept {
    if (!row.choices.empty()) return value_source::choices;
    if (row.name == "site") return value_source::sites;
    if (row.name == "queue") return value_source::queues;
    if (row.name == "after") return value_source::jobs;
    if (row.name == "env") return value_source::variables;
    if (row.name == "hosts") return value_source::hosts;
    if (row.name == "network-interface") return value_source::interfaces;
    if (row.name == "topology") return value_source::topologies;
    if (row.argument == "DIR") return value_source::folders;
    if (row.argument.starts_with("FILE") || row.argument == "PATH") return value_source::files;
    return value_source::nothing;
}

}  // namespace muster
