// A rank initialised its PMIx library.
#include "pmix/server/server_core.hpp"
#include "pmix/server/upcalls/upcalls.hpp"

namespace muster::pmix {

pmix_status_t upcall_client_connected(pmix_proc_t const* proc, void*, pmix_info_t[], size_t, pmix_op_cbfunc_t answer,
                                      void* cookie) {
    auto* core = active_core();
    if (core == nullptr) return PMIX_ERR_NOT_AVAILABLE;
    core->post([who = *proc](server_core& mine) {
        mine.emit({.what = server_event::kind::connected, .rank = mine.rank_of(who), .code = 0, .text = {}});
    });
    // 4.2 passes no function to answer with; later versions do, and then they wait for it.
    if (answer == nullptr) return PMIX_OPERATION_SUCCEEDED;
    answer_later(answer, cookie, PMIX_SUCCESS);
    return PMIX_SUCCESS;
}

}  // namespace muster::pmix
