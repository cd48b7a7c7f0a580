#include "pmix/server/server_core.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "base/error.hpp"
#include "pmix/server/upcalls.hpp"

namespace muster::pmix {
namespace {

std::atomic<server_core*> active{nullptr};

}  // namespace

server_core::server_core(job the_job) : description(std::move(the_job)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_) throw_system("eventfd", "for the PMIx server");
}

void server_core::post(work item) noexcept {
    {
        std::scoped_lock const guard(lock_);
        queue_.push_back(std::move(item));
    }
    std::uint64_t const one = 1;
    // This fails only if the counter is full, and then the reader is awake anyway.
    [[maybe_unused]] auto const written = write(wake_.get(), &one, sizeof one);
}

void server_core::run() {
    std::uint64_t count = 0;
    [[maybe_unused]] auto const drained = read(wake_.get(), &count, sizeof count);
    std::deque<work> todo;
    {
        std::scoped_lock const guard(lock_);
        todo.swap(queue_);
    }
    for (auto& item : todo) item(*this);
}

int server_core::rank_of(pmix_proc_t const& proc) const noexcept {
    if (description.nspace != proc.nspace || proc.rank >= static_cast<pmix_rank_t>(description.world_size)) return -1;
    return static_cast<int>(proc.rank);
}

server_core* active_core() noexcept {
    return active.load(std::memory_order_acquire);
}
bool core_spans_nodes() noexcept {
    auto const* core = active_core();
    return core != nullptr && core->description.spans_nodes();
}
void set_active_core(server_core* core) noexcept {
    active.store(core, std::memory_order_release);
}

void answer_later(pmix_op_cbfunc_t answer, void* cookie, pmix_status_t status) {
    auto* core = active_core();
    if (answer == nullptr || core == nullptr) return;
    core->post([answer, cookie, status](server_core&) { answer(status, cookie); });
}

pmix_server_module_t upcalls() noexcept {
    pmix_server_module_t module;
    std::memset(&module, 0, sizeof module);
    module.client_connected2 = upcall_client_connected;
    module.client_finalized = upcall_client_finalized;
    module.abort = upcall_abort;
    module.fence_nb = upcall_fence;
    module.direct_modex = upcall_direct_modex;
    module.publish = upcall_publish;
    module.lookup = upcall_lookup;
    module.unpublish = upcall_unpublish;
    module.spawn = upcall_spawn;
    module.connect = upcall_connect;
    module.disconnect = upcall_disconnect;
    module.register_events = upcall_register_events;
    module.deregister_events = upcall_deregister_events;
    module.notify_event = upcall_notify_event;
    module.query = upcall_query;
    module.log = upcall_log;
    module.job_control = upcall_job_control;
    module.group = upcall_group;
    return module;
}

}  // namespace muster::pmix
