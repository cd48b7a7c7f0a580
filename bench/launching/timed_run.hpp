// Timed runs: starts a program and waits for its end or for a deadline.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/units.hpp"

namespace muster {

struct timed_result {
    duration wall{0};
    int exit_code = 0;        ///< 128+n for signal n
    bool timed_out = false;   ///< killed, with its process group, at the deadline
    std::string last_line{};  ///< of its standard error, where it did not end well
};

/// "exit code 127: sh: no such program", "hung: …". Pure.
std::string failure_text(timed_result const& ended);

/// Starts `command` (argv[0] is a path), with its output thrown away and its standard error kept in memory, and waits. The clock runs from before vfork to after waitpid.
/// Throws errc::system, program_error.
timed_result run_timed(std::vector<std::string> const& command, environment const& variables, duration deadline);

/// The same, but the clock runs from the first byte of its standard output, a pipe to this program; its standard error is thrown
/// away. A command that ends without having printed anything has the `wall` 0.
timed_result run_timed_from_output(std::vector<std::string> const& command, environment const& variables, duration deadline);

/// The least that any launcher can take: `count` times vfork and exec of `command`, then waiting for all. Wall time.
duration run_bare(std::vector<std::string> const& command, environment const& variables, int count);

}  // namespace muster
