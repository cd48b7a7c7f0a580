// Lists of hosts as Slurm writes them: "gpu[01-04,7],login", and their counts: "4(x3),2".
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// No list may name more hosts than this: twice what the largest machine has, and few enough that a slip of the finger
/// ("n[1-99999999]") is an error and not an exhausted login node.
inline constexpr std::size_t max_hosts = 262'144;

/// The hosts of a list, in order, repeated ones included. Terms are divided by commas or white space outside brackets; each is
/// text with any number of bracketed ranges, "rack[1-2]n[01-16,20]"; a range is as wide as its lower bound is written. The order
/// is that of `scontrol show hostnames`: the last bracket changes fastest, then the others from left to right. Unlike scontrol,
/// text may follow the last bracket. Host names hold letters, digits, '.', '_' and '-' and do not begin with '-'. Throws
/// parse_error that names `origin` (a variable, an option) and shows the fault with a caret, before any memory is spent on it.
std::vector<std::string> expand_hostlist(std::string_view text, std::string_view origin);

/// What is wrong with the name of one host, and where in it: the rules above, and at most 255 characters. Nothing if it is one.
struct host_name_fault {
    std::size_t offset = 0;
    std::string_view message;
};
std::optional<host_name_fault> check_host_name(std::string_view name) noexcept;

/// A short list that expands to exactly these hosts in this order, in Slurm's own grammar: no text behind the last bracket.
/// Hosts that follow each other share brackets, up to two ("rack[1-2]n[01-16]"). Pure; linear, except for the lengths of names.
std::string compress_hosts(std::span<std::string const> hosts);

/// One number for each of `nodes` nodes out of "4(x3),2" (SLURM_TASKS_PER_NODE, SLURM_JOB_CPUS_PER_NODE). More numbers than
/// nodes are ignored: Slurm can say 4(x30) of a single node. Throws parse_error if there are too few or one is no number.
std::vector<int> expand_counts(std::string_view text, std::size_t nodes, std::string_view origin);

}  // namespace muster
