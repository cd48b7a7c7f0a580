#include "launch/engine/start_engine.hpp"

#include "base/process/process.hpp"

namespace muster {

pid_t start_engine(engine_command const& command, more_open_files const& files, standard_fds const& fds) {
    return start_process({.path = find_program(command.argv.front(), command.variables, ""),
                          .arguments = &command.argv,
                          .variables = &command.variables,
                          .working_dir = "",
                          .stdin_fd = fds.in,
                          .stdout_fd = fds.out,
                          .stderr_fd = fds.err,
                          .own_session = command.own_session,
                          .open_files = files.inherited()});
}

}  // namespace muster
