// Finds containers that are being opened, whose program does not run yet, and sends it a signal that it would miss.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "launch/system/event_loop.hpp"

namespace muster {

/// A process, its parent and the name of its program.
struct process_place {
    pid_t pid = 0;
    pid_t parent = 0;
    std::string name;
};

/// Returns the processes of Apptainer or Singularity below which only they and their helpers run: the first one of each
/// container. Pure.
std::vector<pid_t> find_opening_containers(std::vector<process_place> const& processes);

/// Returns the processes below `runtime` that are no part of Apptainer or Singularity. Pure.
std::vector<pid_t> find_container_programs(pid_t runtime, std::vector<process_place> const& processes);

/// Call it when a signal goes to all processes below this one. Apptainer loses signals that arrive while it opens a container:
/// the programs of such containers get it as soon as they run, if that is before `until`.
void signal_opened_containers(event_loop& loop, int signal_number, event_loop::clock::time_point until);

}  // namespace muster
