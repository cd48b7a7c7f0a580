#include <fmt/format.h>

#include <mutex>

#include "comm/internal/mpi_call.hpp"
#include "comm/internal/mpi_runtime.hpp"

namespace muster::detail {

namespace {

char const* level_name(int level) {
    switch (level) {
        case MPI_THREAD_SINGLE: return "MPI_THREAD_SINGLE";
        case MPI_THREAD_FUNNELED: return "MPI_THREAD_FUNNELED";
        case MPI_THREAD_SERIALIZED: return "MPI_THREAD_SERIALIZED";
        default: return "MPI_THREAD_MULTIPLE";
    }
}

/// The program's own initialisation decides; what it does not allow is refused here instead of going wrong later.
void check_level(int wanted) {
    int provided = MPI_THREAD_SINGLE;
    int is_main = 0;
    check(MPI_Query_thread(&provided), "MPI_Query_thread");
    check(MPI_Is_thread_main(&is_main), "MPI_Is_thread_main");
    if (provided < MPI_THREAD_SERIALIZED && is_main == 0)
        throw comm_error(errc::unavailable, fmt::format("MPI was initialised with {}: a communicator can then only be made by "
                                                        "the thread that did it; initialise MPI with "
                                                        "MPI_THREAD_SERIALIZED, or leave it to muster",
                                                        level_name(provided)));
    if (provided < wanted && wanted == MPI_THREAD_MULTIPLE)
        throw comm_error(errc::unavailable, fmt::format("MPI offers {}, but several threads were asked for, which needs {}",
                                                        level_name(provided), level_name(wanted)));
}

}  // namespace

mpi_runtime::mpi_runtime(bool several_threads) {
    int initialized = 0, finalized = 0;
    check(MPI_Initialized(&initialized), "MPI_Initialized");
    check(MPI_Finalized(&finalized), "MPI_Finalized");
    if (finalized != 0)
        throw comm_error(errc::unavailable,
                         "MPI has been finalised and cannot be initialised again; keep one communicator until the program ends");
    int const wanted = several_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
    if (initialized == 0) {
        int provided = MPI_THREAD_SINGLE;
        check(MPI_Init_thread(nullptr, nullptr, wanted, &provided), "MPI_Init_thread");
        owns_ = true;
        log_->debug("communicator: MPI initialised, {}", level_name(provided));
    }
    try {
        check_level(wanted);
    } catch (...) {
        if (owns_) MPI_Finalize();
        throw;
    }
}

mpi_runtime::~mpi_runtime() {
    if (!owns_ || !mpi_is_running()) return;
    if (leave_) {
        try {
            log_->warn("MPI is left unfinalised: operations were given up, and finalising would wait for the other ranks");
        } catch (...) {  // a log that fails is no reason to fail
        }
        return;
    }
    MPI_Finalize();
}

std::shared_ptr<mpi_runtime> mpi_runtime::acquire(bool several_threads) {
    static std::mutex guard;
    static std::weak_ptr<mpi_runtime> current;
    std::scoped_lock const lock(guard);
    if (auto runtime = current.lock()) {
        check_level(several_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED);
        return runtime;
    }
    std::shared_ptr<mpi_runtime> runtime(new mpi_runtime(several_threads));
    current = runtime;
    return runtime;
}

}  // namespace muster::detail
