// Runs another program and waits for it.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

struct child_result {
    int exit_code = 0;   ///< 128 + n if signal n ended it
    double wall_s = 0;   ///< from before it was started until it had ended
    std::string output;  ///< its standard output, if it was captured
};

struct child_options {
    bool capture_output = false;  ///< else standard output is this program's standard error, since ours is data
    std::string input;            ///< given on standard input, which then ends
    std::string error_file;       ///< where its standard error goes; "" = this program's
};

/// Looks `command[0]` up in the PATH of `variables` unless it holds a '/'. The child is told to end (SIGTERM) when this program
/// dies. Throws errc::not_found with a hint if there is no such program, errc::system otherwise. The calling program should have
/// one thread.
child_result run_child(std::vector<std::string> const& command, environment const& variables, child_options const& options = {});

/// The full path of a program, looked up the same way; "" if there is none.
std::string find_program(std::string const& name, environment const& variables);

}  // namespace muster
