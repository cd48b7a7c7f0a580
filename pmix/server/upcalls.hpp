// The functions of the PMIx server module. All run on the library's threads, copy what they need and post it; none blocks.
// Internal.
#pragma once

#include <pmix_server.h>

namespace muster::pmix {

pmix_status_t upcall_client_connected(pmix_proc_t const* proc, void* object, pmix_info_t info[], size_t count,
                                      pmix_op_cbfunc_t answer, void* cookie);
pmix_status_t upcall_client_finalized(pmix_proc_t const* proc, void* object, pmix_op_cbfunc_t answer, void* cookie);
pmix_status_t upcall_abort(pmix_proc_t const* proc, void* object, int code, char const text[], pmix_proc_t targets[],
                           size_t count, pmix_op_cbfunc_t answer, void* cookie);
pmix_status_t upcall_fence(pmix_proc_t const procs[], size_t nprocs, pmix_info_t const info[], size_t ninfo, char* data,
                           size_t bytes, pmix_modex_cbfunc_t answer, void* cookie);
pmix_status_t upcall_direct_modex(pmix_proc_t const* proc, pmix_info_t const info[], size_t ninfo, pmix_modex_cbfunc_t answer,
                                  void* cookie);
pmix_status_t upcall_publish(pmix_proc_t const* proc, pmix_info_t const info[], size_t ninfo, pmix_op_cbfunc_t answer,
                             void* cookie);
pmix_status_t upcall_lookup(pmix_proc_t const* proc, char** keys, pmix_info_t const info[], size_t ninfo,
                            pmix_lookup_cbfunc_t answer, void* cookie);
pmix_status_t upcall_unpublish(pmix_proc_t const* proc, char** keys, pmix_info_t const info[], size_t ninfo,
                               pmix_op_cbfunc_t answer, void* cookie);
pmix_status_t upcall_spawn(pmix_proc_t const* proc, pmix_info_t const info[], size_t ninfo, pmix_app_t const apps[], size_t napps,
                           pmix_spawn_cbfunc_t answer, void* cookie);
pmix_status_t upcall_connect(pmix_proc_t const procs[], size_t nprocs, pmix_info_t const info[], size_t ninfo,
                             pmix_op_cbfunc_t answer, void* cookie);
pmix_status_t upcall_disconnect(pmix_proc_t const procs[], size_t nprocs, pmix_info_t const info[], size_t ninfo,
                                pmix_op_cbfunc_t answer, void* cookie);
pmix_status_t upcall_register_events(pmix_status_t* codes, size_t ncodes, pmix_info_t const info[], size_t ninfo,
                                     pmix_op_cbfunc_t answer, void* cookie);
pmix_status_t upcall_deregister_events(pmix_status_t* codes, size_t ncodes, pmix_op_cbfunc_t answer, void* cookie);
pmix_status_t upcall_notify_event(pmix_status_t code, pmix_proc_t const* source, pmix_data_range_t range, pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t answer, void* cookie);
pmix_status_t upcall_query(pmix_proc_t* proc, pmix_query_t* queries, size_t nqueries, pmix_info_cbfunc_t answer, void* cookie);
void upcall_log(pmix_proc_t const* proc, pmix_info_t const data[], size_t ndata, pmix_info_t const directives[],
                size_t ndirectives, pmix_op_cbfunc_t answer, void* cookie);
pmix_status_t upcall_job_control(pmix_proc_t const* proc, pmix_proc_t const targets[], size_t ntargets,
                                 pmix_info_t const directives[], size_t ndirectives, pmix_info_cbfunc_t answer, void* cookie);
pmix_status_t upcall_group(pmix_group_operation_t operation, char name[], pmix_proc_t const procs[], size_t nprocs,
                           pmix_info_t const directives[], size_t ndirectives, pmix_info_cbfunc_t answer, void* cookie);

}  // namespace muster::pmix
