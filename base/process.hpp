// Starting one process quickly.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

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

struct spawn_request {
    std::string path;                           ///< absolute or with a slash: see find_program
    std::vector<std::string> const* arguments;  ///< argv, with argv[0]; must outlive the call
    environment const* variables;               ///< must outlive the call
    std::string working_dir;                    ///< empty: this process' own
    int stdin_fd = -1;  ///< each becomes descriptor 0, 1, 2 of the child; the caller keeps and closes its own
    int stdout_fd = -1;
    int stderr_fd = -1;
    cpuset cores;           ///< empty: affinity is inherited
    bool own_group = true;  ///< it leads a process group of its own; else it stays in ours
    rlimit open_files{};    ///< what the child gets, since the launcher raises its own
};

/// Starts it (in a process group of its own, unless told otherwise) with default signal dispositions, and bound to be killed when
/// this process dies; returns once it runs the program. vfork and exec: 0.4 ms however large the launcher is. Must be called from
/// the main thread (the parent-death signal is bound to the thread). Throws errc::system naming the step that failed,
/// program_error if the program cannot be executed.
pid_t spawn(spawn_request const& request);

/// The file that `program` names: itself if it has a slash (relative to `working_dir`), else the first executable along PATH of
/// `variables`. Throws program_error with what to do.
std::string find_program(std::string const& program, environment const& variables, std::string const& working_dir);

}  // namespace muster
