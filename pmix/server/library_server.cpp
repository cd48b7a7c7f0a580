#include "pmix/server/library_server.hpp"

#include <dlfcn.h>
#include <hwloc.h>
#include <pmix_server.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstring>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "pmix/library/info_list.hpp"
#include "pmix/library/open_library.hpp"
#include "pmix/server/held_listener.hpp"
#include "pmix/server/server_core.hpp"

namespace muster::pmix {
namespace {

constexpr duration stop_deadline{2};

/// The library would take an outer launcher's PMIX_* for its own; only the user's choices for the library itself stay.
void forget_outer_launcher() {
    auto const variables = environment::capture();
    for (auto const& [name, value] : variables)
        if (name.starts_with("PMIX_") && !name.starts_with("PMIX_MCA_")) unsetenv(name.c_str());
}

}  // namespace

std::string server_name_of(job const& description) {
    return description.nspace + ".server";
}

void prepare_library_environment(bool clients_know) {
    forget_outer_launcher();
    // Parts of the libraries that one server on one node never uses; each that is not opened saves start time. The user's choice stays.
    setenv("PMIX_MCA_gds", client_parts.gds, 0);
    setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 0);                  // they open driver libraries: 3 ms for nothing
    if (clients_know) setenv("PMIX_MCA_psec", client_parts.psec, 0);  // whatever the library's files of settings say
}

void* topology_for_library(void* own) {
    void* const library = open_library();
    auto const find = [library]<typename Function>(Function*, char const* name) {
        return reinterpret_cast<Function*>(::dlsym(library, name));
    };
    auto* const init = find(&hwloc_topology_init, "hwloc_topology_init");
    if (init == &hwloc_topology_init) return own;
    auto* const set_xml = find(&hwloc_topology_set_xmlbuffer, "hwloc_topology_set_xmlbuffer");
    auto* const load = find(&hwloc_topology_load, "hwloc_topology_load");
    if (init == nullptr || set_xml == nullptr || load == nullptr) return nullptr;
    char* text = nullptr;
    int length = 0;
    auto const mine = static_cast<hwloc_topology_t>(own);
    if (hwloc_topology_export_xmlbuffer(mine, &text, &length, 0) != 0) return nullptr;
    hwloc_topology_t theirs = nullptr;
    bool const is_read = init(&theirs) == 0 && set_xml(theirs, text, length) == 0 && load(theirs) == 0;
    hwloc_free_xmlbuffer(mine, text);
    return is_read ? theirs : nullptr;
}

std::shared_ptr<completion> start_library(job const& description, pmix_topology_t& topology, int listener) {
    auto keys = std::make_shared<info_list>();
    keys->add(PMIX_SERVER_TMPDIR, description.session_dir);
    keys->add(PMIX_SYSTEM_TMPDIR, description.session_dir);
    keys->add(PMIX_SERVER_NSPACE, server_name_of(description));
    keys->add_rank(PMIX_SERVER_RANK, 0);
    keys->add(PMIX_HOSTNAME, description.host);
    keys->add(PMIX_SERVER_TOOL_SUPPORT, false);
    keys->add(PMIX_IOF_LOCAL_OUTPUT, false);  // output is the launcher's business
    if (topology.topology != nullptr) {
        pmix_value_t value;
        std::memset(&value, 0, sizeof value);
        value.type = PMIX_TOPO;
        value.data.topo = &topology;
        keys->add_borrowed(PMIX_TOPOLOGY2, value);
    }
    return call_in_thread([keys, listener] {
        auto module = upcalls();
        if (listener < 0) return PMIx_server_init(&module, keys->data(), keys->size());
        held_listener::giving const gift(listener);
        auto const status = PMIx_server_init(&module, keys->data(), keys->size());
        return status == PMIX_SUCCESS && !gift.is_taken() ? PMIX_ERR_NOT_SUPPORTED : status;
    });
}

void register_job(job const& description) {
    auto const done = completion::create();
    auto const keys = std::make_shared<info_list>(describe_job(description));
    auto const nspace = make_proc(description.nspace, 0);
    auto const here = local_ranks_of(description);
    auto* cookie = done->expect_one();
    auto status = PMIx_server_register_nspace(nspace.nspace, static_cast<int>(here.size()), keys->data(), keys->size(),
                                              completion::done, cookie);
    if (status != PMIX_SUCCESS) completion::done(status, cookie);
    // Registered one after the other without waiting for each: a wait would cost a thread switch a rank.
    for (auto rank = here.begin(); rank != here.end() && status == PMIX_SUCCESS; ++rank) {
        auto const proc = make_proc(description.nspace, static_cast<pmix_rank_t>(*rank));
        cookie = done->expect_one();
        status = PMIx_server_register_client(&proc, geteuid(), getegid(), nullptr, completion::done, cookie);
        if (status != PMIX_SUCCESS) completion::done(status, cookie);
    }
    // The keys must live until the library has read them; on a timeout they are left to it.
    try {
        done->wait_or_throw(library_deadline, "PMIx_server_register_nspace");
    } catch (error const& failure) {
        if (failure.code() == errc::timeout) new std::shared_ptr<info_list>(keys);
        throw;
    }
}

bool stop_library() {
    bool const stopped = call_with_deadline(stop_deadline, [] { return PMIx_server_finalize(); })->wait(duration{0});
    if (!stopped) spdlog::warn("PMIx_server_finalize did not return within {}; leaving it", format_duration(stop_deadline));
    return stopped;
}

}  // namespace muster::pmix
