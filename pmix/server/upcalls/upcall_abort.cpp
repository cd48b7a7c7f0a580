// A rank asked for the job to end (MPI_Abort, PMIx_Abort).
#include "pmix/server/server_core.hpp"
#include "pmix/server/upcalls/upcalls.hpp"

namespace muster::pmix {

pmix_status_t upcall_abort(pmix_proc_t const* proc, void*, int code, char const text[], pmix_proc_t[], size_t, pmix_op_cbfunc_t,
                           void*) {
    auto* core = active_core();
    if (core == nullptr) return PMIX_ERR_NOT_AVAILABLE;
    // Whichever ranks it names, the whole job ends: an MPI job that lost ranks cannot go on.
    core->post([who = *proc, code, said = std::string(text != nullptr ? text : "")](server_core& mine) {
        mine.emit({.what = server_event::kind::aborted, .rank = mine.rank_of(who), .code = code, .text = said});
    });
    return PMIX_OPERATION_SUCCEEDED;
}

}  // namespace muster::pmix
