// Completion scripts for shells, written from the tables of commands and settings.
#pragma once

#include <span>
#include <string>

#include "launch/help/help.hpp"
#include "launch/settings/setting.hpp"

namespace muster {

/// The rows that a script completes. What they take is in their fields; the texts that they show say nothing of it.
struct completion_tables {
    std::span<command_row const> commands = muster::commands();
    std::span<setting const> settings = muster::settings();
};

/// The script for a shell. Pure.
std::string bash_completion(completion_tables const& tables = {});
std::string zsh_completion(completion_tables const& tables = {});
std::string fish_completion(completion_tables const& tables = {});

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
    if (row.kind == setting_kind::folder) return value_source::folders;
    if (row.kind == setting_kind::file) return value_source::files;
    return value_source::nothing;
}

}  // namespace muster
