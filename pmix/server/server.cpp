#include "pmix/server/server.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "base/error.hpp"
#include "base/process/phase_timeline.hpp"
#include "pmix/library/accept_own_user.hpp"
#include "pmix/library/completion.hpp"
#include "pmix/server/dummy_topology.hpp"
#include "pmix/server/open_mpi_environment.hpp"
#include "pmix/server/server_core.hpp"

namespace muster::pmix {
namespace {

constexpr duration start_deadline{10};
constexpr duration stop_deadline{2};

/// The library would take an outer launcher's PMIX_* for its own; only the user's choices for the library itself stay.
void forget_outer_launcher() {
    auto const variables = environment::capture();
    for (auto const& [name, value] : variables)
        if (name.starts_with("PMIX_") && !name.starts_with("PMIX_MCA_")) unsetenv(name.c_str());
}

/// Parts of the library that one server on one node never uses; each that is not opened saves start time. And a caller that says
/// nothing holds the library's one thread no longer than a second (version 4 has no limit of its own). The user's choice stays.
void choose_components() {
    setenv("PMIX_MCA_gds", "hash", 0);
    setenv("PMIX_MCA_ptl_base_handshake_wait_time", "1", 0);
}

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
};

namespace {

/// Begins to start it, in a thread.
std::shared_ptr<completion> start_library(job const& description, pmix_topology_t& topology) {
    forget_outer_launcher();
    choose_components();
    auto keys = std::make_shared<info_list>();
    keys->add(PMIX_SERVER_TMPDIR, description.session_dir);
    keys->add(PMIX_SYSTEM_TMPDIR, description.session_dir);
    keys->add(PMIX_SERVER_NSPACE, description.nspace + ".server");
    keys->add_rank(PMIX_SERVER_RANK, 0);
    keys->add(PMIX_HOSTNAME, description.host);
    keys->add(PMIX_SERVER_TOOL_SUPPORT, false);
    keys->add(PMIX_IOF_LOCAL_OUTPUT, false);  // output is the launcher's business
    pmix_value_t value;
    std::memset(&value, 0, sizeof value);
    value.type = PMIX_TOPO;
    value.data.topo = &topology;
    keys->add_borrowed(PMIX_TOPOLOGY2, value);
    return call_in_thread([keys] {
        auto module = upcalls();
        return PMIx_server_init(&module, keys->data(), keys->size());
    });
}

template <typename Meanwhile>
void register_job(job const& description, Meanwhile const& meanwhile) {
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
    meanwhile(*done);
    try {
        done->wait_or_throw(start_deadline, "PMIx_server_register_nspace");
    } catch (error const& failure) {
        if (failure.code() == errc::timeout) new std::shared_ptr<info_list>(keys);
        throw;
    }
}

/// Ends the library's server. False if it did not within the deadline: it is left to itself, and what it may still use with it.
bool stop_library() {
    bool const stopped = call_with_deadline(stop_deadline, [] { return PMIx_server_finalize(); })->wait(duration{0});
    if (!stopped) spdlog::warn("PMIx_server_finalize did not return within {}; leaving it", format_duration(stop_deadline));
    return stopped;
}

}  // namespace

server::server(job const& description, std::function<void(question const&)> const& meanwhile)
    : state_(std::make_unique<state>(description)) {
    // The library keeps its listening socket's set-up in statics, which a second start would take for still open.
    static bool started = false;
    if (started)
        throw error(errc::usage, "there is or was a PMIx server in this process; one is all that the PMIx library starts");
    if (description.nspace.empty() || description.nspace.size() + sizeof ".server" > PMIX_MAX_NSLEN)
        throw error(errc::usage, fmt::format("the job's name \"{}\" must have 1 to {} bytes", description.nspace,
                                             PMIX_MAX_NSLEN - sizeof ".server"));
    if (description.world_size < 1)
        throw error(errc::usage, fmt::format("a world of {} ranks; use 1 or more", description.world_size));
    if (description.topology == nullptr) state_->dummy = make_dummy_topology();
    state_->topology.source = state_->topology_source.data();
    state_->topology.topology = description.topology != nullptr ? description.topology : state_->dummy.get();
    set_active_core(state_->core.get());
    started = true;
    check_callers(true);
    auto const started_library = start_library(description, state_->topology);
    std::exception_ptr fault;  // thrown once the library is done
    auto const call_meanwhile = [&](completion& running) {
        if (!meanwhile || fault) return;
        try {
            meanwhile([&running] { return !running.is_done(); });
        } catch (...) {
            fault = std::current_exception();
        }
    };
    call_meanwhile(*started_library);
    try {
        started_library->wait_or_throw(start_deadline, "PMIx_server_init");
    } catch (error const& failure) {
        set_active_core(nullptr);
        if (failure.code() == errc::timeout) [[maybe_unused]]
            auto* left = state_.release();
        if (fault) std::rethrow_exception(fault);
        throw;
    }
    end_phase("PMIx library started, ports held");
    try {
        if (fault) std::rethrow_exception(fault);
        register_job(description, call_meanwhile);
        if (fault) std::rethrow_exception(fault);
    } catch (...) {
        set_active_core(nullptr);
        if (!stop_library()) [[maybe_unused]]
            auto* left = state_.release();
        throw;
    }
}

server::~server() {
    if (is_left_) {
        [[maybe_unused]] auto* left = state_.release();  // the library's threads use it
        return;
    }
    // From here on upcalls find no server and refuse; what was posted before is answered, so that no rank waits for ever.
    set_active_core(nullptr);
    try {
        state_->core->run();
        if (!stop_library()) [[maybe_unused]]
            auto* left = state_.release();
    } catch (std::exception const& failure) {
        spdlog::warn("while ending the PMIx server: {}", failure.what());
    }
}

void server::set_client_environment(int rank, environment& variables) {
    auto const& description = state_->core->description;
    expect(rank >= 0 && rank < description.world_size, "a rank of this job");
    auto const proc = make_proc(description.nspace, static_cast<pmix_rank_t>(rank));
    owned_argv set;
    check(PMIx_server_setup_fork(&proc, &set.list), "PMIx_server_setup_fork");
    for (char** entry = set.list; entry != nullptr && *entry != nullptr; ++entry) {
        std::string_view const line(*entry);
        auto const equals = line.find('=');
        if (equals != std::string_view::npos) variables.set(line.substr(0, equals), line.substr(equals + 1));
    }
    set_open_mpi_environment(description, rank, variables);
}

int server::event_fd() const noexcept {
    return state_->core->event_fd();
}

std::vector<server_event> server::poll() {
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
        // Only for those who asked for this very code: a default handler (Open MPI has one) would end its rank with words of its
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
    // Of one that connected the library sees the connection end. Told before it does, it closes a socket that it still writes to.
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
