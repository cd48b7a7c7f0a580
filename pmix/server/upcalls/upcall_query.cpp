// Questions about the job that the library cannot answer from what was registered.
#include <memory>

#include "pmix/server/server_core.hpp"
#include "pmix/server/upcalls/upcalls.hpp"

namespace muster::pmix {

pmix_status_t upcall_query(pmix_proc_t*, pmix_query_t* queries, size_t nqueries, pmix_info_cbfunc_t answer, void* cookie) {
    auto* core = active_core();
    if (core == nullptr || answer == nullptr) return PMIX_ERR_NOT_AVAILABLE;
    std::vector<std::string> keys;
    for (size_t i = 0; i < nqueries; ++i)
        for (char** key = queries[i].keys; key != nullptr && *key != nullptr; ++key) keys.emplace_back(*key);
    core->post([keys = std::move(keys), answer, cookie](server_core& mine) {
        auto results = std::make_unique<info_list>();
        for (auto const& key : keys) {
            if (key == PMIX_QUERY_NAMESPACES) results->add(PMIX_QUERY_NAMESPACES, mine.description.nspace);
            if (key == PMIX_JOB_SIZE) results->add_u32(PMIX_JOB_SIZE, static_cast<std::uint32_t>(mine.description.world_size));
        }
        pmix_status_t status = PMIX_SUCCESS;
        if (results->size() < keys.size()) status = results->size() == 0 ? PMIX_ERR_NOT_FOUND : PMIX_QUERY_PARTIAL_SUCCESS;
        auto* entries = results->data();
        auto const count = results->size();
        answer(
            status, entries, count, cookie, [](void* owned) { delete static_cast<info_list*>(owned); }, results.release());
    });
    return PMIX_SUCCESS;
}

}  // namespace muster::pmix
