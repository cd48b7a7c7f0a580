// The MPI that a Python program loads by mpi4py, asked of that Python: no file is linked with it.
#pragma once

#include <string>

#include "launch/engine/engine_job.hpp"
#include "launch/scheduler/scheduler_sources.hpp"

namespace muster {

/// The name of the MPI library that the job's Python loads by mpi4py, as that library says it ("MPICH Version: 5.0.2"). Empty if
/// the job's command is no Python, if neither its words nor its script hold "mpi4py", or if Python does not tell. Starts that
/// Python once, only where mpi4py is named.
std::string find_python_mpi(engine_job const& job, scheduler_sources const& sources);

}  // namespace muster
