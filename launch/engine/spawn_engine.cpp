#include "launch/engine/spawn_engine.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/process/process.hpp"

namespace muster {

namespace {

constexpr std::size_t other_files = 64;  // that the launcher itself needs

}  // namespace

more_open_files::more_open_files(std::size_t connections) {
    ::getrlimit(RLIMIT_NOFILE, &inherited_);
    if (inherited_.rlim_max != RLIM_INFINITY && inherited_.rlim_max < connections + other_files)
        throw error(errc::system,
                    fmt::format("{} shims need {} open files here, a connection each, and the limit is {}; raise it (ulimit -n)",
                                connections, connections + other_files, inherited_.rlim_max));
    rlimit const raised{inherited_.rlim_max, inherited_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &raised);
}

more_open_files::~more_open_files() {
    ::setrlimit(RLIMIT_NOFILE, &inherited_);
}

pid_t spawn_engine(engine_command const& command, more_open_files const& files, standard_fds const& fds) {
    return start_process({.path = find_program(command.argv.front(), command.variables, ""),
                          .arguments = &command.argv,
                          .variables = &command.variables,
                          .working_dir = "",
                          .stdin_fd = fds.in,
                          .stdout_fd = fds.out,
                          .stderr_fd = fds.err,
                          .open_files = files.inherited()});
}

}  // namespace muster
