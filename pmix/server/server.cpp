#include "pmix/server/server.hpp"

#include <hwloc.h>
#include <pmix_server.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <optional>
#include <utility>

#include "base/process/this_process.hpp"
#include "base/throw_error.hpp"
#include "base/unique_handle.hpp"
#include "pmix/library/open_library.hpp"
#include "pmix/library/peer_uid.hpp"
#include "pmix/server/client_variables.hpp"
#include "pmix/server/held_listener.hpp"
#include "pmix/server/library_server.hpp"
#include "pmix/server/server_core.hpp"

namespace muster::pmix {

struct topology_traits {
    using type = hwloc_topology_t;
    static type null() noexcept { return nullptr; }
    static void close(type handle) noexcept { hwloc_topology_destroy(handle); }
};
using unique_topology = unique_handle<topology_traits>;

/// Takes 0.1 ms. Throws library_error.
unique_topology make_dummy_topology() {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) throw library_error("hwloc", "hwloc_topology_init", -1, "failed");
    unique_topology topology(raw);
    if (hwloc_topology_set_synthetic(topology.get(), "pu:1") != 0 || hwloc_topology_load(topology.get()) != 0)
        throw library_error("hwloc", "hwloc_topology_set_synthetic", -1, "failed");
    return topology;
}
namespace {

constexpr int most_waiting_ranks = 128;

/// A library's server that is to start when somebody connects.
struct late_start {
    held_listener listener;
    std::string version = library_version();
    unique_fd either{::epoll_create1(EPOLL_CLOEXEC)};  ///< readable if the listener or the server's own descriptor is
    std::vector<std::pair<int, int>> exits;            ///< ranks that ended before, with their status: whom it starts for may ask
    bool failed = false;

    explicit late_start(int event_fd) {
        for (int const fd : {listener.fd(), event_fd}) {
            epoll_event wanted{};
            wanted.events = EPOLLIN;
            if (::epoll_ctl(either.get(), EPOLL_CTL_ADD, fd, &wanted) != 0) throw_system("epoll_ctl", "for the PMIx server");
        }
    }

    bool is_called() const {
        pollfd one{listener.fd(), POLLIN, 0};
        return ::poll(&one, 1, 0) > 0;
    }

    /// The library has it, or nobody.
    void give_listener_up() { ::epoll_ctl(either.get(), EPOLL_CTL_DEL, listener.fd(), nullptr); }
};

struct owned_argv {
    char** list = nullptr;
    ~owned_argv() {
        for (char** entry = list; entry != nullptr && *entry != nullptr; ++entry) std::free(*entry);
        std::free(static_cast<void*>(list));
    }
};

pmix_status_t exit_event(int wait_status, bool finalized) {
    if (WIFSIGNALED(wait_status)) return PMIX_ERR_PROC_ABORTED_BY_SIG;
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) != 0) return PMIX_ERR_PROC_ABORTED;
    return finalized ? PMIX_SUCCESS : PMIX_ERR_PROC_TERM_WO_SYNC;
}

int exit_code_of(int wait_status) {
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace

struct server::state {
    explicit state(job description) {
        if (description.usable_cores <= 0) description.usable_cores = count_processors(description);
        core = std::make_unique<server_core>(std::move(description));
        auto const size = static_cast<std::size_t>(std::max(core->description.world_size, 0));
        connected.resize(size);
        finalized.resize(size);
    }
    std::unique_ptr<server_core> core;
    unique_topology dummy;
    pmix_topology_t topology{};
    std::string topology_source = "hwloc";
    std::vector<bool> connected, finalized;
    std::vector<int> ended;  ///< ranks that the library is to forget
    std::optional<late_start> late;
    bool is_started = false;  ///< the library's server
};

server::server(job const& description, library_start when) : state_(std::make_shared<state>(description)) {
    // The library keeps its listening socket's set-up in statics, which a second start would take for still open.
    static bool started = false;
    if (started)
        throw error(errc::usage, "there is or was a PMIx server in this process; one is all that the PMIx library starts");
    if (description.nspace.empty() || description.nspace.size() + sizeof ".server" > PMIX_MAX_NSLEN)
        throw_error(errc::usage, "the job's name \"{}\" must have 1 to {} bytes", description.nspace,
                    PMIX_MAX_NSLEN - sizeof ".server");
    if (description.world_size < 1) throw_error(errc::usage, "a world of {} ranks; use 1 or more", description.world_size);
    bool const can_wait = when == library_start::at_first_call && !description.spans_nodes() &&
                          description.world_size <= most_waiting_ranks &&
                          knows_client_variables(library_version(), environment::capture());
    prepare_library_environment(can_wait);
    if (!description.topology) state_->dummy = make_dummy_topology();
    set_active_core(state_->core.get());
    started = true;
    check_callers(true);
    if (!can_wait) {
        start();
        return;
    }
    try {
        state_->late.emplace(state_->core->event_fd());
    } catch (...) {
        set_active_core(nullptr);
        throw;
    }
    end_phase("ports held, PMIx waits for a caller");
}

/// Leaves no active core behind if it throws.
void server::start(int listener) {
    auto const& description = state_->core->description;
    std::optional<callers_held> until_the_job_is_known;
    if (listener >= 0) until_the_job_is_known.emplace();
    state_->topology.source = state_->topology_source.data();
    try {
        state_->topology.topology = topology_for_library(description.topology ? description.topology() : state_->dummy.get());
    } catch (...) {
        set_active_core(nullptr);
        throw;
    }
    auto const started_library = start_library(description, state_->topology, listener);
    try {
        started_library->wait_or_throw(library_deadline, "PMIx_server_init");
    } catch (error const& failure) {
        set_active_core(nullptr);
        if (failure.code() == errc::timeout) leave();
        throw;
    }
    end_phase("PMIx library started, ports held");
    try {
        register_job(description);
        state_->is_started = true;
    } catch (...) {
        set_active_core(nullptr);
        until_the_job_is_known.reset();  // the library waits for its own thread
        if (!stop_library()) leave();
        throw;
    }
}

/// Somebody has connected, and waits.
void server::start_waited_for() {
    auto& late = *state_->late;
    late.failed = true;
    late.give_listener_up();
    try {
        start(late.listener.fd());
    } catch (...) {
        ::shutdown(late.listener.fd(), SHUT_RDWR);  // who waits there, and who comes, is refused
        throw;
    }
    late.failed = false;
    for (auto const& [rank, status] : std::exchange(late.exits, {})) report_exit(rank, status);
}

/// The library's threads use the state: it is theirs for good.
void server::leave() {
    if (!std::exchange(is_left_, true)) new std::shared_ptr<state>(state_);
}

server::~server() {
    if (is_left_) return;
    // Upcalls find no server and refuse from here on; what was posted before is answered, so that no rank waits for ever.
    set_active_core(nullptr);
    try {
        state_->core->run();
        if (state_->is_started && !stop_library()) leave();
    } catch (std::exception const& failure) {
        spdlog::warn("while ending the PMIx server: {}", failure.what());
    }
}

void server::set_client_environment(int rank, environment& variables) {
    auto const& description = state_->core->description;
    expect(rank >= 0 && rank < description.world_size, "a rank of this job");
    auto const proc = make_proc(description.nspace, static_cast<pmix_rank_t>(rank));
    if (state_->late && !state_->is_started) {
        set_client_variables(description, rank, state_->late->listener.port(), state_->late->version, variables);
        return set_open_mpi_environment(description, rank, variables);
    }
    owned_argv set;
    check(PMIx_server_setup_fork(&proc, &set.list), "PMIx_server_setup_fork");
    for (char** entry = set.list; entry != nullptr && *entry != nullptr; ++entry) {
        std::string_view const line(*entry);
        auto const equals = line.find('=');
        if (equals != std::string_view::npos) variables.set(line.substr(0, equals), line.substr(equals + 1));
    }
    set_open_mpi_environment(description, rank, variables);
}

bool server::is_library_started() const noexcept {
    return state_->is_started;
}

int server::event_fd() const noexcept {
    return state_->late ? state_->late->either.get() : state_->core->event_fd();
}

std::vector<server_event> server::poll() {
    if (state_->late && !state_->is_started && !state_->late->failed && state_->late->is_called()) start_waited_for();
    state_->core->run();
    auto events = std::exchange(state_->core->events, {});
    for (auto const& event : events) {
        if (event.rank < 0) continue;
        auto const rank = static_cast<std::size_t>(event.rank);
        if (event.what == server_event::kind::connected) state_->connected[rank] = true;
        if (event.what == server_event::kind::finalized) state_->finalized[rank] = true;
    }
    return events;
}

server_mail server::take_mail() {
    return std::exchange(state_->core->mail, {});
}

void server::finish_exchange(std::string const& name, std::string const& parts) {
    auto& fences = state_->core->fences;
    auto const found = fences.find(name);
    if (found == fences.end()) return;
    auto const whom = found->second;
    fences.erase(found);  // the next one of this name may come at once
    answer_modex(whom, PMIX_SUCCESS, parts);
}

void server::take(modex_message const& message) {
    auto& core = *state_->core;
    if (message.rank >= 0) return look_up_for(core, message);
    auto const found = core.questions.find(message.number);
    if (found == core.questions.end()) return;
    answer_modex(found->second, message.status, message.data);
    core.questions.erase(found);
}

void server::report_exit(int rank, int wait_status) {
    auto const& description = state_->core->description;
    expect(rank >= 0 && rank < description.world_size, "a rank of this job");
    if (!state_->is_started) {
        state_->late->exits.emplace_back(rank, wait_status);
        return;
    }
    auto const index = static_cast<std::size_t>(rank);
    auto const proc = make_proc(description.nspace, static_cast<pmix_rank_t>(rank));
    // One that never connected and exits with 0 is no client at all: an ordinary program.
    auto const event = exit_event(wait_status, state_->finalized[index] || !state_->connected[index]);
    if (event != PMIX_SUCCESS) {
        struct notice {  // the library reads both until it is finished
            pmix_proc_t source;
            info_list keys;
        };
        auto owned = std::make_unique<notice>(notice{proc, {}});
        owned->keys.add_proc(PMIX_EVENT_AFFECTED_PROC, proc);
        owned->keys.add_int(PMIX_EXIT_CODE, exit_code_of(wait_status));
        // The event reaches only those who asked for this very code: a default handler (Open MPI has one) would end its rank with a message of its
        // own.
        owned->keys.add(PMIX_EVENT_NON_DEFAULT, true);
        auto* keys = owned->keys.data();
        auto const count = owned->keys.size();
        auto* cookie = owned.release();
        auto const finish = [](pmix_status_t, void* mine) { delete static_cast<notice*>(mine); };
        auto const status = PMIx_Notify_event(event, &cookie->source, PMIX_RANGE_NAMESPACE, keys, count, finish, cookie);
        if (status != PMIX_SUCCESS) {
            finish(status, cookie);
            spdlog::debug("PMIx_Notify_event: {}", PMIx_Error_string(status));
        }
    }
    // The library sees the connection of a rank that connected end. Told before it does, it closes a socket that it still writes to.
    if (!state_->connected[index]) state_->ended.push_back(rank);
}

void server::forget_ended() {
    for (int const rank : std::exchange(state_->ended, {})) {
        auto const proc = make_proc(state_->core->description.nspace, static_cast<pmix_rank_t>(rank));
        PMIx_server_deregister_client(
            &proc, [](pmix_status_t, void*) {}, nullptr);
    }
}

}  // namespace muster::pmix
