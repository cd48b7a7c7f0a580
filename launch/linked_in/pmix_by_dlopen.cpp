// The PMIx library's functions within the program muster: forward to the library, which is opened when a run needs it.
#include <dlfcn.h>
#include <link.h>
#include <pmix_server.h>

#include <string>

#include "base/error.hpp"
#include "pmix/library/open_library.hpp"

namespace {

using muster::errc;
using muster::error;

/// The functions of the library that the server (pmix/server) uses.
struct pmix_functions {
    explicit pmix_functions(void* library) : from(library) {}
    void* from;

    std::string file() const {
        link_map const* known = nullptr;
        return ::dlinfo(from, RTLD_DI_LINKMAP, &known) == 0 && known != nullptr ? known->l_name : "";
    }

    template <typename Function>
    Function* find(char const* name) const {
        void* const found = ::dlsym(from, name);
        if (found == nullptr)
            throw error(errc::unavailable, "the PMIx library " + file() + " has no " + name +
                                               "; install version 4.2 or later, or take its folder out of LD_LIBRARY_PATH");
        return reinterpret_cast<Function*>(found);
    }
};

pmix_functions const& library() {
    static pmix_functions const opened(muster::pmix::open_library());
    return opened;
}

}  // namespace

/// Defines the library's function `name` with these parameters, as a call of the one that was found.
#define MUSTER_FORWARD(result, name, parameters, arguments)                    \
    result name parameters {                                                   \
        static auto* const function = library().find<decltype(::name)>(#name); \
        return function arguments;                                             \
    }

extern "C" {

MUSTER_FORWARD(char const*, PMIx_Error_string, (pmix_status_t status), (status))
MUSTER_FORWARD(char const*, PMIx_Get_version, (void), ())
MUSTER_FORWARD(pmix_status_t, PMIx_Info_load, (pmix_info_t * info, char const* key, void const* data, pmix_data_type_t type),
               (info, key, data, type))
MUSTER_FORWARD(pmix_status_t, PMIx_Info_xfer, (pmix_info_t * to, pmix_info_t const* from), (to, from))
MUSTER_FORWARD(void, PMIx_Value_destruct, (pmix_value_t * value), (value))
MUSTER_FORWARD(pmix_status_t, PMIx_Notify_event,
               (pmix_status_t status, pmix_proc_t const* source, pmix_data_range_t range, pmix_info_t const info[], size_t count,
                pmix_op_cbfunc_t done, void* cookie),
               (status, source, range, info, count, done, cookie))
MUSTER_FORWARD(pmix_status_t, PMIx_generate_ppn, (char const* input, char** ppn), (input, ppn))
MUSTER_FORWARD(pmix_status_t, PMIx_generate_regex, (char const* input, char** regex), (input, regex))
MUSTER_FORWARD(pmix_status_t, PMIx_server_init, (pmix_server_module_t * module, pmix_info_t info[], size_t count),
               (module, info, count))
MUSTER_FORWARD(pmix_status_t, PMIx_server_dmodex_request,
               (pmix_proc_t const* proc, pmix_dmodex_response_fn_t answer, void* cookie), (proc, answer, cookie))
MUSTER_FORWARD(pmix_status_t, PMIx_server_finalize, (void), ())
MUSTER_FORWARD(pmix_status_t, PMIx_server_generate_locality_string, (pmix_cpuset_t const* cpuset, char** locality),
               (cpuset, locality))
MUSTER_FORWARD(pmix_status_t, PMIx_server_register_nspace,
               (pmix_nspace_t const nspace, int local_ranks, pmix_info_t info[], size_t count, pmix_op_cbfunc_t done,
                void* cookie),
               (nspace, local_ranks, info, count, done, cookie))
MUSTER_FORWARD(pmix_status_t, PMIx_server_register_client,
               (pmix_proc_t const* proc, uid_t user, gid_t group, void* object, pmix_op_cbfunc_t done, void* cookie),
               (proc, user, group, object, done, cookie))
MUSTER_FORWARD(void, PMIx_server_deregister_client, (pmix_proc_t const* proc, pmix_op_cbfunc_t done, void* cookie),
               (proc, done, cookie))
MUSTER_FORWARD(pmix_status_t, PMIx_server_setup_fork, (pmix_proc_t const* proc, char*** variables), (proc, variables))

}  // extern "C"
