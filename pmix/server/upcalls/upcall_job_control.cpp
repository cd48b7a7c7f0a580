// Requests to pause, signal or kill ranks. Files to clean up are the library's own business and never come here.
#include "pmix/server/upcalls/upcalls.hpp"

namespace muster::pmix {

// Signals are the user's to send, to muster, which forwards them to every rank.
pmix_status_t upcall_job_control(pmix_proc_t const*, pmix_proc_t const[], size_t, pmix_info_t const[], size_t, pmix_info_cbfunc_t,
                                 void*) {
    return PMIX_ERR_NOT_SUPPORTED;
}

}  // namespace muster::pmix
