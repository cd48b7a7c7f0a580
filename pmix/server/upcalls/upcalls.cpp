#include "pmix/server/upcalls/upcalls.hpp"

#include <cstring>
#include <memory>

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
        auto* entries = results->data();
        auto const count = results->size();
        answer(
            status, entries, count, cookie, [](void* owned) { delete static_cast<info_list*>(owned); }, results.release());
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

}  // namespace muster::pmix
