// Reads and writes lists of hosts in Slurm's form, "gpu[01-04,7],login", and counts: "4(x3),2".
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// No list may name more hosts than this: twice as many as the largest machine has, and few enough that a typo ("n[1-99999999]")
/// is an error and does not exhaust a login node.
inline constexpr std::size_t max_hosts = 262'144;

/// Returns the hosts of a list, in order, repeated ones included. Commas or white space outside brackets separate terms; each is
/// text with any number of bracketed ranges, "rack[1-2]n[01-16,20]"; the lower bound gives a range its width. The order is that
/// of `scontrol show hostnames`: the last bracket changes fastest, then the others from left to right. Unlike with scontrol, text
/// may follow the last bracket. Host names contain letters, digits, '.', '_' and '-' and do not begin with '-'. Throws
/// parse_error that names `origin` (a variable, an option) and shows the fault with a caret, before it allocates memory for the
/// hosts.
std::vector<std::string> expand_hostlist(std::string_view text, std::string_view origin);

/// Says what is wrong with the name of one host, and where: the rules above apply, and a limit of 255 characters.
struct host_name_fault {
    std::size_t offset = 0;
    std::string_view message;
};
std::optional<host_name_fault> check_host_name(std::string_view name) noexcept;

/// Returns a short list that expands to exactly these hosts in this order, in Slurm's own grammar: no text after the last
/// bracket. Consecutive hosts share brackets, up to two ("rack[1-2]n[01-16]"). Pure; linear, except for the lengths of names.
std::string compress_hosts(std::span<std::string const> hosts);

/// Returns one number for each of `nodes` nodes from "4(x3),2" (SLURM_TASKS_PER_NODE, SLURM_JOB_CPUS_PER_NODE). Ignores excess
/// numbers: Slurm may write 4(x30) for a single node. Throws parse_error if there are too few or one is no number.
std::vector<int> expand_counts(std::string_view text, std::size_t nodes, std::string_view origin);

}  // namespace muster
