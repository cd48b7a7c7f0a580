// The mpi backend within libmuster_comm.so: it calls the functions of comm/mpi/mpi_backend.hpp in libmuster_comm_mpi.so.
#include <dlfcn.h>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "comm/modules/open_module.hpp"
#include "comm/mpi/mpi_backend.hpp"

namespace muster {

namespace {

modules::opened_module const& mpi_module() {
    static auto const found =
        modules::open_module("mpi", environment::capture().get_or("MUSTER_COMM_MPI_MODULE", ""),
                             "install muster's libraries with MPI, or name the module's file in MUSTER_COMM_MPI_MODULE");
    return found;
}

modules::mpi_functions const* mpi() {
    return static_cast<modules::mpi_functions const*>(mpi_module().functions);
}

/// Returns whether the library has the function and it says yes. Both functions asked for here have this signature in every MPI.
bool says_yes(void* library, char const* function) {
    auto* const ask = reinterpret_cast<int (*)(int*)>(::dlsym(library, function));
    int answer = 0;
    return ask != nullptr && ask(&answer) == 0 && answer != 0;
}

bool is_running(void* library) {
    return says_yes(library, "MPI_Initialized") && !says_yes(library, "MPI_Finalized");
}

/// Returns whether the program has initialised its own MPI. Asked before the module is loaded, which would load MPI into programs
/// without it. An extension of Python loads its MPI only for itself, so the program's symbols do not show it; its file does.
bool program_runs_mpi() {
    if (is_running(RTLD_DEFAULT)) return true;
    for (auto const& path : modules::loaded_mpi_libraries()) {
        void* const library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (library == nullptr) continue;
        bool const running = is_running(library);
        ::dlclose(library);
        if (running) return true;
    }
    return false;
}

}  // namespace

std::optional<std::string> mpi_unavailable(identity const& who, comm_options const& options) {
    return mpi() != nullptr ? mpi()->unavailable(who, options) : mpi_module().why_not;
}

std::unique_ptr<collective_backend> make_mpi_backend(identity const& who, comm_options const& options) {
    if (mpi() == nullptr) throw error(errc::unavailable, "mpi: " + mpi_module().why_not);
    return mpi()->make_backend(who, options);
}

int running_mpi_world_size() noexcept try {
    return program_runs_mpi() && mpi() != nullptr ? mpi()->running_world_size() : 0;
} catch (...) {
    return 0;
}

}  // namespace muster
