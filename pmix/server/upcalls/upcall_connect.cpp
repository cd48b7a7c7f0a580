// Ranks that connect to each other (MPI_Comm_accept and _connect): the library calls once all local ones have.
#include "pmix/server/server_core.hpp"
#include "pmix/server/upcalls/upcalls.hpp"

namespace muster::pmix {

pmix_status_t upcall_connect(pmix_proc_t const[], size_t, pmix_info_t const[], size_t, pmix_op_cbfunc_t answer, void* cookie) {
    if (core_spans_nodes()) return PMIX_ERR_NOT_SUPPORTED;
    answer_later(answer, cookie, PMIX_SUCCESS);
    return PMIX_SUCCESS;
}

pmix_status_t upcall_disconnect(pmix_proc_t const[], size_t, pmix_info_t const[], size_t, pmix_op_cbfunc_t answer, void* cookie) {
    if (core_spans_nodes()) return PMIX_ERR_NOT_SUPPORTED;
    answer_later(answer, cookie, PMIX_SUCCESS);
    return PMIX_SUCCESS;
}

}  // namespace muster::pmix
