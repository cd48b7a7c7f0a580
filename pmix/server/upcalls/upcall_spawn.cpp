// A rank asked for more processes (MPI_Comm_spawn).
#include "pmix/server/server_core.hpp"
#include "pmix/server/upcalls/upcalls.hpp"

namespace muster::pmix {

// A job's ranks are counted, mapped and bound before the first one starts, so there is no place for later ones: the program gets
// an error that it can handle.
pmix_status_t upcall_spawn(pmix_proc_t const*, pmix_info_t const[], size_t, pmix_app_t const[], size_t, pmix_spawn_cbfunc_t,
                           void*) {
    return PMIX_ERR_NOT_SUPPORTED;
}

}  // namespace muster::pmix
