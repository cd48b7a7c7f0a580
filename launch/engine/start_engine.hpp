// Starts an engine's command; its shims connect to the launcher.
#pragma once

#include <sys/types.h>

#include "launch/engine/engine_job.hpp"
#include "launch/system/open_files.hpp"

namespace muster {

struct standard_fds {
    int in = -1;  ///< -1: /dev/null
    int out = -1;
    int err = -1;
};

/// Starts it in a process group of its own, with the limit of open files that this process inherited. Throws errc::system,
/// program_error if there is no such program.
pid_t start_engine(engine_command const& command, more_open_files const& files, standard_fds const& fds);

}  // namespace muster
