// Starts one process quickly, and finds the program that it is to run.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cpuset.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"

namespace muster {

/// The program to run is not there (exit code 127) or cannot be executed (126), as shells and timeout(1) say it.
class program_error : public error {
  public:
    program_error(errc code, std::string const& message) : error(code, message) {}
    int exit_status() const noexcept { return code() == errc::not_found ? 127 : 126; }
};

/// A limit as setrlimit has it: RLIMIT_CORE and a value; RLIM_INFINITY means no limit.
struct soft_limit {
    int resource = 0;
    std::uint64_t value = 0;
    bool operator==(soft_limit const&) const = default;
};

/// Holds what to start, and how.
struct process_request {
    std::string path;                           ///< absolute or with a slash: see find_program
    std::vector<std::string> const* arguments;  ///< argv, with argv[0]; must outlive the call
    environment const* variables;               ///< must outlive the call
    std::string working_dir;                    ///< empty: this process' own
    int stdin_fd = -1;  ///< each becomes descriptor 0, 1, 2 of the child; below 0: /dev/null. The caller keeps and closes its own
    int stdout_fd = -1;
    int stderr_fd = -1;
    int kept_fd = -1;                     ///< stays open in the child, under its number; below 0: none
    cpuset cores;                         ///< empty: affinity is inherited
    bool own_group = true;                ///< it leads its own process group; else it stays in ours
    bool own_session = false;             ///< it leads its own session, and with it a process group
    std::optional<rlimit> open_files;     ///< nothing: inherited
    int death_signal = SIGKILL;           ///< what the child gets when this process dies
    std::vector<soft_limit> limits = {};  ///< each as far as the hard limit allows; others are inherited
    int file_mask = -1;                   ///< umask; below 0: inherited
    std::vector<int> ignored = {};        ///< signals that the child begins with as ignored: it keeps that through exec
};

/// Starts it with default signal dispositions; returns its process id once it runs the program: 0.4 ms however
/// large this process is. The child gets `death_signal` when the calling thread ends, so call it from the main thread. Throws
/// errc::system naming the step that failed, program_error if the program cannot be executed.
pid_t start_process(process_request const& request);

/// The file that `program` names: itself if it has a slash (relative to `working_dir`), else the first executable along PATH of
/// `variables`. Throws program_error with what to do.
std::string find_program(std::string const& program, environment const& variables, std::string const& working_dir);

/// The same from this process' working directory; empty if there is no such program.
std::string find_program_or_nothing(std::string const& program, environment const& variables);

}  // namespace muster
