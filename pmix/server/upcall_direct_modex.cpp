// A rank asked for the keys of a process that no local client is. There are no other servers to ask.
#include "pmix/server/server_core.hpp"
#include "pmix/server/upcalls.hpp"

namespace muster::pmix {

pmix_status_t upcall_direct_modex(pmix_proc_t const*, pmix_info_t const[], size_t, pmix_modex_cbfunc_t answer, void* cookie) {
    auto* core = active_core();
    if (core == nullptr || answer == nullptr) return PMIX_ERR_NOT_AVAILABLE;
    core->post([=](server_core&) { answer(PMIX_ERR_NOT_FOUND, nullptr, 0, cookie, nullptr, nullptr); });
    return PMIX_SUCCESS;
}

}  // namespace muster::pmix
