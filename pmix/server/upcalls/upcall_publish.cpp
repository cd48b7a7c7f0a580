// Data that ranks publish under a name (PMIx_Publish, MPI_Publish_name) and others look up.
#include <algorithm>
#include <cstring>

#include "pmix/server/server_core.hpp"
#include "pmix/server/upcalls/upcalls.hpp"

namespace muster::pmix {
namespace {

/// Everything in a request that is not data. All ranges mean this job, and all data lives as long as the server.
bool is_directive(pmix_info_t const& entry) {
    return has_key(entry, PMIX_RANGE) || has_key(entry, PMIX_PERSISTENCE) || has_key(entry, PMIX_USERID) ||
           has_key(entry, PMIX_GRPID) || has_key(entry, PMIX_TIMEOUT) || has_key(entry, PMIX_WAIT) ||
           has_key(entry, PMIX_ACCESS_PERMISSIONS);
}

/// How many of `keys` a lookup waits for; none without PMIX_WAIT, all where that is 0 or no number.
std::size_t needed_by(pmix_info_t const info[], size_t count, std::size_t keys) {
    for (size_t i = 0; i < count; ++i) {
        if (!has_key(info[i], PMIX_WAIT)) continue;
        auto const wanted = info[i].value.type == PMIX_INT ? info[i].value.data.integer : 0;
        return wanted <= 0 ? keys : std::min<std::size_t>(static_cast<std::size_t>(wanted), keys);
    }
    return 0;
}

std::vector<std::string> strings(char** list) {
    std::vector<std::string> all;
    for (; list != nullptr && *list != nullptr; ++list) all.emplace_back(*list);
    return all;
}

/// Answers a lookup with what is there, if that is enough.
bool try_answer(server_core& core, server_core::pending_lookup const& lookup) {
    std::vector<pmix_pdata_t> found;
    for (auto const& key : lookup.keys) {
        auto const entry = core.data.find(key);
        if (entry == core.data.end()) continue;
        found.emplace_back();
        auto& item = found.back();
        std::memset(&item, 0, sizeof item);
        item.proc = entry->second.owner;
        set_key(item.key, key);
        item.value = entry->second.value.entries()[0].value;  // borrowed: the library packs it before the answer returns
    }
    if (found.size() < lookup.needed) return false;
    lookup.answer(found.empty() ? PMIX_ERR_NOT_FOUND : PMIX_SUCCESS, found.data(), found.size(), lookup.cookie);
    return true;
}

}  // namespace

pmix_status_t upcall_publish(pmix_proc_t const* proc, pmix_info_t const info[], size_t ninfo, pmix_op_cbfunc_t answer,
                             void* cookie) {
    auto* core = active_core();
    if (core == nullptr) return PMIX_ERR_NOT_AVAILABLE;
    if (core_spans_nodes()) return PMIX_ERR_NOT_SUPPORTED;
    auto entries = std::make_shared<info_list>(copy_of(info, ninfo));
    core->post([owner = *proc, entries, answer, cookie](server_core& mine) {
        pmix_status_t status = PMIX_SUCCESS;
        for (auto const& entry : entries->entries()) {
            if (is_directive(entry)) continue;
            info_list value;
            value.copy(entry);
            if (!mine.data.try_emplace(entry.key, server_core::published{owner, std::move(value)}).second)
                status = PMIX_ERR_DUPLICATE_KEY;
        }
        answer(status, cookie);
        std::erase_if(mine.lookups, [&mine](auto const& lookup) { return try_answer(mine, lookup); });
    });
    return PMIX_SUCCESS;
}

pmix_status_t upcall_lookup(pmix_proc_t const*, char** keys, pmix_info_t const info[], size_t ninfo, pmix_lookup_cbfunc_t answer,
                            void* cookie) {
    auto* core = active_core();
    if (core == nullptr) return PMIX_ERR_NOT_AVAILABLE;
    if (core_spans_nodes()) return PMIX_ERR_NOT_SUPPORTED;
    auto wanted = strings(keys);
    auto const needed = needed_by(info, ninfo, wanted.size());
    core->post([lookup = server_core::pending_lookup{std::move(wanted), needed, answer, cookie}](server_core& mine) {
        if (!try_answer(mine, lookup)) mine.lookups.push_back(lookup);
    });
    return PMIX_SUCCESS;
}

pmix_status_t upcall_unpublish(pmix_proc_t const* proc, char** keys, pmix_info_t const[], size_t, pmix_op_cbfunc_t answer,
                               void* cookie) {
    auto* core = active_core();
    if (core == nullptr) return PMIX_ERR_NOT_AVAILABLE;
    if (core_spans_nodes()) return PMIX_ERR_NOT_SUPPORTED;
    // No keys: everything that this process published.
    core->post([owner = *proc, all = keys == nullptr, names = strings(keys), answer, cookie](server_core& mine) {
        std::erase_if(mine.data, [&](auto const& entry) {
            bool const own = is_same(entry.second.owner, owner);
            return own && (all || std::find(names.begin(), names.end(), entry.first) != names.end());
        });
        answer(PMIX_SUCCESS, cookie);
    });
    return PMIX_SUCCESS;
}

}  // namespace muster::pmix
