// A rank asked for the keys of a process that no local client is: the server of that process' node is asked.
#include <memory>

#include "pmix/server/server_core.hpp"
#include "pmix/server/upcalls/upcalls.hpp"

namespace muster::pmix {
namespace {

static_assert(modex_not_found == PMIX_ERR_NOT_FOUND);

/// The node of that rank; -1 where it is none of another node's.
int node_with(job const& description, pmix_proc_t const& proc) {
    if (description.nspace != proc.nspace) return -1;
    for (std::size_t n = 0; n < description.nodes.size(); ++n)
        for (int const rank : description.nodes[n].ranks)
            if (proc.rank == static_cast<pmix_rank_t>(rank)) return static_cast<int>(n);
    return -1;
}

}  // namespace

pmix_status_t upcall_direct_modex(pmix_proc_t const* proc, pmix_info_t const[], size_t, pmix_modex_cbfunc_t answer, void* cookie) {
    auto* core = active_core();
    if (core == nullptr || answer == nullptr) return PMIX_ERR_NOT_AVAILABLE;
    core->post([=, who = *proc](server_core& mine) {
        int const node = node_with(mine.description, who);
        if (node < 0 || node == mine.description.node) return answer_modex({answer, cookie}, PMIX_ERR_NOT_FOUND, {});
        int const number = mine.next_question++;
        mine.questions[number] = {answer, cookie};
        mine.mail.modex.push_back({node, number, static_cast<int>(who.rank), 0, {}});
    });
    return PMIX_SUCCESS;
}

void look_up_for(server_core& core, modex_message const& question) {
    struct asker {
        int node;
        int number;
    };
    auto owned = std::make_unique<asker>(asker{question.node, question.number});
    auto const proc = make_proc(core.description.nspace, static_cast<pmix_rank_t>(question.rank));
    auto const answered = [](pmix_status_t status, char* data, size_t bytes, void* mine) {
        std::unique_ptr<asker> const who(static_cast<asker*>(mine));
        auto* active = active_core();
        if (active == nullptr) return;
        modex_message answer{who->node, who->number, -1, status, std::string(data == nullptr ? "" : data, data == nullptr ? 0 : bytes)};
        active->post([answer = std::move(answer)](server_core& server) { server.mail.modex.push_back(answer); });
    };
    auto const status = PMIx_server_dmodex_request(&proc, answered, owned.get());
    if (status == PMIX_SUCCESS) {
        owned.release();
        return;
    }
    core.mail.modex.push_back({question.node, question.number, -1, status, {}});
}

}  // namespace muster::pmix
