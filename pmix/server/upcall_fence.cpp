// A fence with ranks of other servers. All ranks are here, so the library completes fences by itself; this answers the rest.
#include <cstdlib>
#include <cstring>

#include "pmix/server/server_core.hpp"
#include "pmix/server/upcalls.hpp"

namespace muster::pmix {

pmix_status_t upcall_fence(pmix_proc_t const[], size_t, pmix_info_t const[], size_t, char* data, size_t bytes,
                           pmix_modex_cbfunc_t answer, void* cookie) {
    auto* core = active_core();
    if (core == nullptr) return PMIX_ERR_NOT_AVAILABLE;
    // What the local ranks gave is all that there is: hand it back. `data` is ours now and the library frees it when done.
    core->post([=](server_core&) {
        if (answer != nullptr)
            answer(
                PMIX_SUCCESS, data, bytes, cookie, [](void* mine) { std::free(mine); }, data);
    });
    return PMIX_SUCCESS;
}

}  // namespace muster::pmix
