// Runs a program to its end and keeps what it printed.
#pragma once

#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace muster {

inline constexpr std::chrono::milliseconds command_limit{10'000};
inline constexpr std::size_t command_output_limit = std::size_t{64} << 20;  ///< of stdout; qstat of 10,000 nodes is about 1 MB

/// Says how a command ended, and what it printed.
struct command_output {
    int exit_status = 0;  ///< 128+n: ended by signal n
    std::string out;
    std::string err;
    std::chrono::duration<double> wall{0};  ///< from before it was started until it had ended

    bool operator==(command_output const& other) const {
        return exit_status == other.exit_status && out == other.out && err == other.err;
    }
};

/// Says how to run a command.
struct capture_options {
    std::optional<std::chrono::milliseconds> limit;  ///< nothing: however long it takes
    std::string_view input;                          ///< given on standard input, which then ends
    int out_fd = -1;                                 ///< where standard output goes; below 0: into the result
    int err_fd = -1;                                 ///< where standard error goes; below 0: into the result
    bool own_group = true;                           ///< it leads its own process group, which is killed at the limit
    int death_signal = SIGKILL;                      ///< what it gets when this process dies
    std::size_t output_limit = command_output_limit;
};

/// Gives options for a command that a person waits for: it runs in this process' group, so that Ctrl-C reaches it, with this process' standard error,
/// and ended by SIGTERM if this process dies.
capture_options foreground();

/// Runs `argv` (found along PATH of `variables`, no shell). Returns once it has ended, or at the latest `limit` after its start:
/// then it and its process group are killed, and the status is 124. Descendants that outlive it do not hold this call. Status
/// 125: it printed more than `output_limit`, was killed then, and the result has what it had printed. Throws program_error if it
/// is not there or cannot be executed, errc::system if no process can be made. Call it from the main thread, as start_process().
command_output run_program(std::vector<std::string> const& argv, environment const& variables, capture_options const& how);

/// The same with an empty standard input and all output kept. Never throws for what the command does; 127: there is no such
/// program; 126: it cannot be executed.
command_output run_captured(std::vector<std::string> const& argv, environment const& variables,
                            std::chrono::milliseconds limit = command_limit);

}  // namespace muster
