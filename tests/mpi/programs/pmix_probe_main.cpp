// A pure PMIx client: what programs that use no MPI do with the server. The first word says what to try; 0 means it went right.
#include <pmix.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "pmix/client/client.hpp"

namespace {

using muster::pmix::client;

std::promise<std::tuple<pmix_status_t, int, int>> told;  ///< of a rank that ended: code, rank, exit code

void expect(bool good, std::string const& what) {
    if (!good) throw muster::error(muster::errc::internal, "not so: " + what);
}

/// Every rank puts bytes, and reads its neighbour's.
void exchange(client& me) {
    auto const [rank, size] = std::pair(me.who().rank, me.who().world_size);
    std::vector<std::byte> const bytes(static_cast<std::size_t>(rank + 3), static_cast<std::byte>(rank));  // NUL bytes for rank 0
    me.put("bytes", bytes);
    me.commit();
    me.fence();
    int const other = (rank + 1) % size;
    expect(me.get_bytes(other, "bytes") == std::vector(static_cast<std::size_t>(other + 3), static_cast<std::byte>(other)),
           "the neighbour's bytes");
    std::printf("rank %d of %d local %d of %d\n", rank, size, me.who().local_rank, me.who().local_size);
    me.fence();
}

/// Runs on the library's thread.
void on_end(std::size_t, pmix_status_t code, pmix_proc_t const*, pmix_info_t info[], std::size_t count, pmix_info_t*, std::size_t,
            pmix_event_notification_cbfunc_fn_t finished, void* cookie) {
    int rank = -1, exit_code = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC)) rank = static_cast<int>(info[i].value.data.proc->rank);
        if (PMIX_CHECK_KEY(&info[i], PMIX_EXIT_CODE)) exit_code = info[i].value.data.integer;
    }
    told.set_value({code, rank, exit_code});
    if (finished != nullptr) finished(PMIX_SUCCESS, nullptr, 0, nullptr, nullptr, cookie);
}

/// Rank 1 is killed; the others hear of it.
void watch(client& me) {
    pmix_status_t killed = PMIX_ERR_PROC_ABORTED_BY_SIG;
    expect(PMIx_Register_event_handler(&killed, 1, nullptr, 0, on_end, nullptr, nullptr) >= 0, "PMIx_Register_event_handler");
    me.fence();
    if (me.who().rank == 1) std::raise(SIGKILL);
    auto event = told.get_future();
    expect(event.wait_for(std::chrono::seconds(20)) == std::future_status::ready, "an event within 20 s");
    auto const [code, rank, exit_code] = event.get();
    expect(code == killed, "killed by a signal");
    std::printf("rank %d saw rank %d end with %d\n", me.who().rank, rank, exit_code);
}

/// Aborts, then waits to be killed like everybody else.
void abort_job(client& me) {
    me.fence();
    if (me.who().rank == 0) PMIx_Abort(42, "enough", nullptr, 0);
    for (;;) pause();
}

void log_text(client& me) {
    pmix_info_t text;
    std::string const line = "logged by rank " + std::to_string(me.who().rank) + "\n";
    PMIX_INFO_LOAD(&text, PMIX_LOG_STDERR, line.c_str(), PMIX_STRING);
    expect(PMIx_Log(&text, 1, nullptr, 0) == PMIX_SUCCESS, "PMIx_Log");
    PMIX_INFO_DESTRUCT(&text);
    me.fence();  // the server still answers
}

/// The last rank publishes; the others wait for it, read it, and a second publisher of the same name is refused.
void publish(client& me) {
    int const last = me.who().world_size - 1;
    if (me.who().rank == last) {
        pmix_info_t entry;
        PMIX_INFO_LOAD(&entry, "service", "port-7", PMIX_STRING);
        expect(PMIx_Publish(&entry, 1) == PMIX_SUCCESS, "PMIx_Publish");
        expect(PMIx_Publish(&entry, 1) == PMIX_ERR_DUPLICATE_KEY, "a second PMIx_Publish of the same key is refused");
        PMIX_INFO_DESTRUCT(&entry);
    } else {
        pmix_pdata_t entry;
        PMIX_PDATA_CONSTRUCT(&entry);
        PMIX_LOAD_KEY(entry.key, "service");
        int all = 0;
        pmix_info_t wait;
        PMIX_INFO_LOAD(&wait, PMIX_WAIT, &all, PMIX_INT);
        expect(PMIx_Lookup(&entry, 1, &wait, 1) == PMIX_SUCCESS, "PMIx_Lookup that waits");
        expect(entry.value.type == PMIX_STRING && std::strcmp(entry.value.data.string, "port-7") == 0, "the published value");
        expect(static_cast<int>(entry.proc.rank) == last, "the publisher's rank");
        PMIX_PDATA_DESTRUCT(&entry);
    }
    me.fence();
    char key[] = "service";
    char* keys[] = {key, nullptr};
    if (me.who().rank == last) expect(PMIx_Unpublish(keys, nullptr, 0) == PMIX_SUCCESS, "PMIx_Unpublish");
    me.fence();
    pmix_pdata_t gone;
    PMIX_PDATA_CONSTRUCT(&gone);
    PMIX_LOAD_KEY(gone.key, "service");
    expect(PMIx_Lookup(&gone, 1, nullptr, 0) == PMIX_ERR_NOT_FOUND, "nothing after PMIx_Unpublish");
    PMIX_PDATA_DESTRUCT(&gone);
    me.fence();
}

/// A group of all ranks, numbered by the server.
void group(client& me) {
    auto const size = static_cast<std::size_t>(me.who().world_size);
    std::vector<pmix_proc_t> members(size);
    for (std::size_t i = 0; i < size; ++i) PMIX_LOAD_PROCID(&members[i], me.who().nspace.c_str(), static_cast<pmix_rank_t>(i));
    bool yes = true;
    pmix_info_t wanted;
    PMIX_INFO_LOAD(&wanted, PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    pmix_info_t* results = nullptr;
    std::size_t count = 0;
    auto const status = PMIx_Group_construct("probe", members.data(), size, &wanted, 1, &results, &count);
    expect(status == PMIX_SUCCESS, std::string("PMIx_Group_construct: ") + PMIx_Error_string(status));
    std::size_t id = 0;
    for (std::size_t i = 0; i < count; ++i)
        if (PMIX_CHECK_KEY(&results[i], PMIX_GROUP_CONTEXT_ID)) id = results[i].value.data.size;
    expect(id != 0, "the group has a number");
    std::printf("group %zu\n", id);
    me.fence();
}

void spawn(client& me) {
    pmix_app_t app;
    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup("/bin/true");
    app.maxprocs = 1;
    pmix_nspace_t nspace;
    if (me.who().rank == 0) {
        auto const status = PMIx_Spawn(nullptr, 0, &app, 1, nspace);
        expect(status != PMIX_SUCCESS, "PMIx_Spawn is refused");
        std::printf("spawn: %s\n", PMIx_Error_string(status));
    }
    PMIX_APP_DESTRUCT(&app);
    me.fence();
}

/// Waiting for a key that nobody puts ends at the deadline.
void missing_key(client& me) {
    me.commit();
    me.fence();
    try {
        (void)me.get_bytes((me.who().rank + 1) % me.who().world_size, "nobody-puts-this", muster::duration{1});
        expect(false, "a key nobody put is not found");
    } catch (muster::error const& e) {
        expect(e.code() == muster::errc::not_found || e.code() == muster::errc::timeout, e.what());
    }
    me.fence();
}

}  // namespace

int main(int argc, char** argv) {
    std::map<std::string, std::function<void(client&)>> const tries{
        {"exchange", exchange}, {"watch", watch}, {"abort", abort_job}, {"log", log_text},
        {"publish", publish},   {"group", group}, {"spawn", spawn},     {"missing-key", missing_key}};
    auto const what = tries.find(argc > 1 ? argv[1] : "");
    if (what == tries.end()) return 2;
    try {
        client me;
        what->second(me);
        me.finalize();
        return 0;
    } catch (std::exception const& e) {
        std::fprintf(stderr, "pmix_probe %s: %s\n", argv[1], e.what());
        return 1;
    }
}
