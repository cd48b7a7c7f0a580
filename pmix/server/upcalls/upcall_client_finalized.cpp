// A rank finalised its PMIx library.
#include "pmix/server/server_core.hpp"
#include "pmix/server/upcalls/upcalls.hpp"

namespace muster::pmix {

pmix_status_t upcall_client_finalized(pmix_proc_t const* proc, void*, pmix_op_cbfunc_t, void*) {
    auto* core = active_core();
    if (core == nullptr) return PMIX_ERR_NOT_AVAILABLE;
    core->post([who = *proc](server_core& mine) {
        mine.emit({.what = server_event::kind::finalized, .rank = mine.rank_of(who), .code = 0, .text = {}});
    });
    return PMIX_OPERATION_SUCCEEDED;  // nothing to wait for: the rank may go on at once
}

}  // namespace muster::pmix
