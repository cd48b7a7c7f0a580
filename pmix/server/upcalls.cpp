#include "pmix/server/upcalls.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>

#include "pmix/server/server_core.hpp"

namespace muster::pmix {

// A rank asked for the job to end (MPI_Abort, PMIx_Abort).

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

// A rank initialised its PMIx library.

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

// A rank finalised its PMIx library.

pmix_status_t upcall_client_finalized(pmix_proc_t const* proc, void*, pmix_op_cbfunc_t, void*) {
    auto* core = active_core();
    if (core == nullptr) return PMIX_ERR_NOT_AVAILABLE;
    core->post([who = *proc](server_core& mine) {
        mine.emit({.what = server_event::kind::finalized, .rank = mine.rank_of(who), .code = 0, .text = {}});
    });
    return PMIX_OPERATION_SUCCEEDED;  // nothing to wait for: the rank may go on at once
}

// Ranks that connect to each other (MPI_Comm_accept and _connect): the library calls once all local ones have.

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

// Events between ranks. The library delivers them to its own clients, and there are no others.

pmix_status_t upcall_register_events(pmix_status_t*, size_t, pmix_info_t const[], size_t, pmix_op_cbfunc_t, void*) {
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t upcall_deregister_events(pmix_status_t*, size_t, pmix_op_cbfunc_t, void*) {
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t upcall_notify_event(pmix_status_t, pmix_proc_t const*, pmix_data_range_t, pmix_info_t[], size_t, pmix_op_cbfunc_t,
                                  void*) {
    return PMIX_OPERATION_SUCCEEDED;
}

// Groups of ranks. The library gathers the members; we number the group where they ask for it.

namespace {

/// Answers with the list, which the library frees.
void give(std::unique_ptr<info_list> results, pmix_status_t status, pmix_info_cbfunc_t answer, void* cookie) {
    auto* const entries = results->data();
    auto const count = results->size();
    answer(
        status, entries, count, cookie, [](void* owned) { delete static_cast<info_list*>(owned); }, results.release());
}

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
        give(std::move(results), PMIX_SUCCESS, answer, cookie);
    });
    return PMIX_SUCCESS;
}

// Requests to pause, signal or kill ranks. Files to clean up are the library's own business and never come here.

// Signals are the user's to send, to muster, which forwards them to every rank.
pmix_status_t upcall_job_control(pmix_proc_t const*, pmix_proc_t const[], size_t, pmix_info_t const[], size_t, pmix_info_cbfunc_t,
                                 void*) {
    return PMIX_ERR_NOT_SUPPORTED;
}

// Text that a rank wants shown: Open MPI's help messages, PMIx_Log.

namespace {

bool is_text(pmix_info_t const& entry) {
    return entry.value.type == PMIX_STRING && entry.value.data.string != nullptr &&
           (has_key(entry, PMIX_LOG_STDERR) || has_key(entry, PMIX_LOG_STDOUT) || has_key(entry, PMIX_LOG_SYSLOG) ||
            has_key(entry, PMIX_LOG_LOCAL_SYSLOG) || has_key(entry, PMIX_LOG_GLOBAL_SYSLOG) || has_key(entry, PMIX_LOG_MSG));
}

/// PMIX_LOG_MSG and the show-help keys may come as bytes.
bool is_bytes(pmix_info_t const& entry) {
    return entry.value.type == PMIX_BYTE_OBJECT && entry.value.data.bo.bytes != nullptr && has_key(entry, PMIX_LOG_MSG);
}

}  // namespace

void upcall_log(pmix_proc_t const* proc, pmix_info_t const data[], size_t ndata, pmix_info_t const[], size_t,
                pmix_op_cbfunc_t answer, void* cookie) {
    auto* core = active_core();
    if (core == nullptr) return;
    std::string text;
    for (size_t i = 0; i < ndata; ++i) {
        if (is_text(data[i])) text += data[i].value.data.string;
        if (is_bytes(data[i])) text.append(data[i].value.data.bo.bytes, data[i].value.data.bo.size);
    }
    // Answering from here hangs the 4.2 library for ever: it holds the lock that the answer takes.
    core->post([who = *proc, text = std::move(text), answer, cookie](server_core& mine) {
        if (!text.empty()) mine.emit({.what = server_event::kind::log, .rank = mine.rank_of(who), .code = 0, .text = text});
        if (answer != nullptr) answer(PMIX_SUCCESS, cookie);
    });
}

// Questions about the job that the library cannot answer from what was registered.

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
        give(std::move(results), status, answer, cookie);
    });
    return PMIX_SUCCESS;
}

// A rank asked for more processes (MPI_Comm_spawn).

// A job's ranks are counted, mapped and bound before the first one starts, so there is no place for later ones: the program gets
// an error that it can handle.
pmix_status_t upcall_spawn(pmix_proc_t const*, pmix_info_t const[], size_t, pmix_app_t const[], size_t, pmix_spawn_cbfunc_t,
                           void*) {
    return PMIX_ERR_NOT_SUPPORTED;
}

// A fence with ranks of other servers. The library completes those of local ranks by itself.

namespace {

/// The same at every server that takes part: "fence" and the ranks, or "fence *" for all.
std::string name_of_fence(std::vector<pmix_proc_t> const& procs) {
    std::set<pmix_rank_t> ranks;
    for (auto const& proc : procs) ranks.insert(proc.rank);
    std::string name = "fence";
    if (ranks.contains(PMIX_RANK_WILDCARD)) return name + " *";
    for (auto const rank : ranks) name += " " + std::to_string(rank);
    return name;
}

std::vector<int> nodes_with(job const& description, std::vector<pmix_proc_t> const& procs) {
    std::vector<int> found;
    for (std::size_t n = 0; n < description.nodes.size(); ++n) {
        auto const& ranks = description.nodes[n].ranks;
        auto const is_here = [&](pmix_proc_t const& proc) {
            return proc.rank == PMIX_RANK_WILDCARD ||
                   std::find(ranks.begin(), ranks.end(), static_cast<int>(proc.rank)) != ranks.end();
        };
        if (std::any_of(procs.begin(), procs.end(), is_here)) found.push_back(static_cast<int>(n));
    }
    return found;
}

}  // namespace

void answer_modex(server_core::pending_modex const& whom, pmix_status_t status, std::string const& data) {
    auto* bytes = data.empty() ? nullptr : static_cast<char*>(std::malloc(data.size()));
    if (bytes != nullptr) std::memcpy(bytes, data.data(), data.size());
    whom.answer(
        status, bytes, bytes == nullptr ? 0 : data.size(), whom.cookie, [](void* mine) { std::free(mine); }, bytes);
}

pmix_status_t upcall_fence(pmix_proc_t const procs[], size_t nprocs, pmix_info_t const[], size_t, char* data, size_t bytes,
                           pmix_modex_cbfunc_t answer, void* cookie) {
    auto* core = active_core();
    if (core == nullptr || answer == nullptr) return PMIX_ERR_NOT_AVAILABLE;
    // `data` is ours now.
    std::string given(data == nullptr ? "" : data, data == nullptr ? 0 : bytes);
    std::free(data);
    core->post(
        [members = std::vector<pmix_proc_t>(procs, procs + nprocs), given = std::move(given), answer, cookie](server_core& mine) {
            // The job has nothing but what the local ranks gave: hand it back.
            if (!mine.description.spans_nodes()) return answer_modex({answer, cookie}, PMIX_SUCCESS, given);
            auto const name = name_of_fence(members);
            mine.fences[name] = {answer, cookie};
            mine.mail.parts.push_back({name, nodes_with(mine.description, members), given});
        });
    return PMIX_SUCCESS;
}

// A rank asked for the keys of a process that no local client is: the server of that process' node is asked.

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

pmix_status_t upcall_direct_modex(pmix_proc_t const* proc, pmix_info_t const[], size_t, pmix_modex_cbfunc_t answer,
                                  void* cookie) {
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
        modex_message answer{who->node, who->number, -1, status,
                             std::string(data == nullptr ? "" : data, data == nullptr ? 0 : bytes)};
        active->post([answer = std::move(answer)](server_core& server) { server.mail.modex.push_back(answer); });
    };
    auto const status = PMIx_server_dmodex_request(&proc, answered, owned.get());
    if (status == PMIX_SUCCESS) {
        owned.release();
        return;
    }
    core.mail.modex.push_back({question.node, question.number, -1, status, {}});
}

// Data that ranks publish under a name (PMIx_Publish, MPI_Publish_name) and others look up.

namespace {

/// Everything in a request that is not data. All ranges mean this job, and all data lives as long as the server.
bool is_directive(pmix_info_t const& entry) {
    return has_key(entry, PMIX_RANGE) || has_key(entry, PMIX_PERSISTENCE) || has_key(entry, PMIX_USERID) ||
           has_key(entry, PMIX_GRPID) || has_key(entry, PMIX_TIMEOUT) || has_key(entry, PMIX_WAIT) ||
           has_key(entry, PMIX_ACCESS_PERMISSIONS);
}

/// Returns how many of `keys` a lookup waits for; none without PMIX_WAIT, all where that is 0 or no number.
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
