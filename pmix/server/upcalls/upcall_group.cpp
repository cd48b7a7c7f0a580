// Groups of ranks. The library gathers the members; we number the group where they ask for it.
#include <memory>

#include "pmix/server/server_core.hpp"
#include "pmix/server/upcalls/upcalls.hpp"

namespace muster::pmix {
namespace {

bool wants_context_id(pmix_info_t const directives[], size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (has_key(directives[i], PMIX_GROUP_ASSIGN_CONTEXT_ID)) return is_true(directives[i]);
    return false;
}

}  // namespace

pmix_status_t upcall_group(pmix_group_operation_t operation, char[], pmix_proc_t const procs[], size_t nprocs,
                           pmix_info_t const directives[], size_t ndirectives, pmix_info_cbfunc_t answer, void* cookie) {
    auto* core = active_core();
    if (core == nullptr || answer == nullptr) return PMIX_ERR_NOT_AVAILABLE;
    if (core_spans_nodes()) return PMIX_ERR_NOT_SUPPORTED;
    bool const numbered = operation == PMIX_GROUP_CONSTRUCT && wants_context_id(directives, ndirectives);
    std::vector<pmix_proc_t> members(procs, procs + nprocs);
    core->post([=, members = std::move(members)](server_core& mine) {
        auto results = std::make_unique<info_list>();
        // A number never used before in this job: it can serve as the generation.
        // A client of PMIx 5 takes the members from the answer.
        if (operation == PMIX_GROUP_CONSTRUCT) results->add_procs(PMIX_GROUP_MEMBERSHIP, members);
        if (numbered) results->add_size(PMIX_GROUP_CONTEXT_ID, mine.next_context_id++);
        auto* entries = results->data();
        auto const count = results->size();
        answer(
            PMIX_SUCCESS, entries, count, cookie, [](void* owned) { delete static_cast<info_list*>(owned); }, results.release());
    });
    return PMIX_SUCCESS;
}

}  // namespace muster::pmix
