// MPI's initialisation, shared by all communicators of the process.
#pragma once

#include <atomic>
#include <memory>

#include "base/log.hpp"

namespace muster::detail {

/// Finalises MPI with the last owner if it initialised it. Thread safe.
class mpi_runtime {
  public:
    /// Initialises MPI unless it is initialised already. Throws mpi_error; errc::unavailable if MPI has been finalised, or if its
    /// thread level does not allow calls from this thread.
    static std::shared_ptr<mpi_runtime> acquire(bool several_threads);

    ~mpi_runtime();
    mpi_runtime(mpi_runtime const&) = delete;
    mpi_runtime& operator=(mpi_runtime const&) = delete;

    /// MPI_Finalize would wait for ranks that do not come: do not call it.
    void leave_unfinalised() noexcept { leave_ = true; }

  private:
    explicit mpi_runtime(bool several_threads);
    std::shared_ptr<spdlog::logger> log_ = spdlog::default_logger();  // a static communicator may outlive the registry of loggers
    bool owns_ = false;
    std::atomic<bool> leave_ = false;
};

}  // namespace muster::detail
