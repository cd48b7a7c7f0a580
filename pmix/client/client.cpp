#include "pmix/client/client.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>
#include <variant>

#include "base/throw_error.hpp"
#include "pmix/library/completion.hpp"
#include "pmix/library/info_list.hpp"
#include "pmix/library/open_library.hpp"

namespace muster::pmix {

struct client::state {
    identity who;
    pmix_proc_t self{};
    bool finalized = false;
};

namespace {

constexpr duration last_deadline{2};

std::atomic<bool> in_use{false};

/// A value of either kind, copied out of the library's memory.
using value = std::variant<std::monostate, std::string, std::vector<std::byte>, std::uint64_t>;

value copy_value(pmix_value_t const& from) {
    switch (from.type) {
        case PMIX_STRING: return std::string(from.data.string != nullptr ? from.data.string : "");
        case PMIX_BYTE_OBJECT: {
            auto const* bytes = reinterpret_cast<std::byte const*>(from.data.bo.bytes);
            return std::vector<std::byte>(bytes, bytes + from.data.bo.size);
        }
        case PMIX_UINT16: return std::uint64_t{from.data.uint16};
        case PMIX_UINT32: return std::uint64_t{from.data.uint32};
        case PMIX_PROC_RANK: return std::uint64_t{from.data.rank};
        case PMIX_SIZE: return std::uint64_t{from.data.size};
        default: return std::monostate{};
    }
}

/// A request for one value; shared with the callback, which may come after the asker has given up. The library copies neither key
/// nor process nor directives, but reads them until then.
struct pending_get {
    std::string key;
    pmix_proc_t of{};
    info_list directives;
    std::shared_ptr<completion> done = completion::create();
    void* cookie = nullptr;
    value result;
};

void got(pmix_status_t status, pmix_value_t* found, void* cookie) {
    std::unique_ptr<std::shared_ptr<pending_get>> const request(static_cast<std::shared_ptr<pending_get>*>(cookie));
    if (status == PMIX_SUCCESS && found != nullptr) (*request)->result = copy_value(*found);
    completion::done(status, (*request)->cookie);
}

value get(pmix_proc_t const& of, std::string_view key, duration deadline) {
    auto const request = std::make_shared<pending_get>();
    request->key = key;
    request->of = of;
    // This makes the server forget the request as well.
    request->directives.add_int(PMIX_TIMEOUT, static_cast<int>(std::min(std::ceil(deadline.count()), 1e6)));
    request->cookie = request->done->expect_one();
    auto* cookie = new std::shared_ptr<pending_get>(request);
    auto const status =
        PMIx_Get_nb(&request->of, request->key.c_str(), request->directives.data(), request->directives.size(), got, cookie);
    if (status != PMIX_SUCCESS) {
        delete cookie;
        completion::cancel(request->cookie);
        check(status, fmt::format("PMIx_Get_nb({})", key));
    }
    bool const answered = request->done->wait(deadline);
    auto const outcome = answered ? request->done->status() : PMIX_ERR_TIMEOUT;
    if (outcome == PMIX_ERR_NOT_FOUND || outcome == PMIX_ERR_PROC_ENTRY_NOT_FOUND)
        throw_error(errc::not_found, "rank {} of {} has no key \"{}\"", of.rank, of.nspace, key);
    if (outcome == PMIX_ERR_TIMEOUT)
        throw_error(errc::timeout, "rank {} of {} did not give key \"{}\" within {}", of.rank, of.nspace, key,
                    format_duration(deadline));
    check(outcome, fmt::format("PMIx_Get_nb({}) of rank {}", key, of.rank));
    return request->result;
}

int number_or(pmix_proc_t const& of, char const* key, int otherwise, duration deadline) {
    try {
        auto const found = get(of, key, deadline);
        if (auto const* number = std::get_if<std::uint64_t>(&found)) return static_cast<int>(*number);
    } catch (error const& failure) {
        if (failure.code() == errc::timeout) throw;
    }
    return otherwise;
}

identity ask_who(pmix_proc_t const& self, duration deadline) {
    auto const job = make_proc(self.nspace, PMIX_RANK_WILDCARD);
    identity who;
    who.from = identity::source::pmix;
    who.nspace = self.nspace;
    who.rank = static_cast<int>(self.rank);
    who.world_size = number_or(job, PMIX_JOB_SIZE, 0, deadline);
    if (who.world_size <= who.rank)
        throw_error(errc::singleton, "the PMIx server knows a world of {} ranks, this is rank {}", who.world_size, who.rank);
    who.local_size = number_or(job, PMIX_LOCAL_SIZE, 1, deadline);
    who.local_rank = number_or(self, PMIX_LOCAL_RANK, 0, deadline);
    who.node_count = number_or(job, PMIX_NUM_NODES, 1, deadline);
    who.node_rank = number_or(self, PMIX_NODEID, 0, deadline);
    try {
        auto const found = get(self, PMIX_HOSTNAME, deadline);
        if (auto const* name = std::get_if<std::string>(&found)) who.host = *name;
    } catch (error const& failure) {
        if (failure.code() == errc::timeout) throw;
    }
    return who;
}

}  // namespace

bool client_is_available() noexcept try {
    open_library();
    return true;
} catch (std::exception const&) {
    return false;
}

client::client(duration deadline) : state_(std::make_shared<state>()) {
    open_library();  // throws here, not on another thread, where the library is missing
    if (in_use.exchange(true)) throw error(errc::usage, "there is a PMIx client in this process already; use that one");
    bool connected = false;
    try {
        auto const self = state_;  // a call that is late still writes into it
        auto const done = call_with_deadline(deadline, [self] { return PMIx_Init(&self->self, nullptr, 0); });
        auto const status = done->wait(duration{0}) ? done->status() : PMIX_SUCCESS;
        if (status == PMIX_ERR_INVALID_NAMESPACE || status == PMIX_ERR_UNREACH || status == PMIX_ERR_INIT ||
            status == PMIX_ERR_NOT_FOUND)
            throw_error(errc::unavailable, "no PMIx server for this process ({}); start it with muster run",
                        PMIx_Error_string(status));
        done->wait_or_throw(duration{0}, "PMIx_Init");
        connected = true;
        state_->who = ask_who(state_->self, deadline);
    } catch (...) {
        if (connected) call_with_deadline(last_deadline, [] { return PMIx_Finalize(nullptr, 0); });
        in_use = false;
        throw;
    }
}

client::~client() {
    try {
        finalize(last_deadline);
    } catch (std::exception const& failure) {
        spdlog::debug("while leaving PMIx: {}", failure.what());
    }
}

identity const& client::who() const noexcept {
    return state_->who;
}

void client::put(std::string_view key, std::span<std::byte const> bytes) {
    pmix_value_t box;
    std::memset(&box, 0, sizeof box);
    box.type = PMIX_BYTE_OBJECT;
    box.data.bo.bytes = const_cast<char*>(reinterpret_cast<char const*>(bytes.data()));  // copied, not written to
    box.data.bo.size = bytes.size();
    check(PMIx_Put(PMIX_GLOBAL, std::string(key).c_str(), &box), fmt::format("PMIx_Put({})", key));
}

void client::commit(duration deadline) {
    call_with_deadline(deadline, [] { return PMIx_Commit(); })->wait_or_throw(duration{0}, "PMIx_Commit");
}

void client::fence(duration deadline) {
    auto const done = completion::create();
    auto const keys = std::make_shared<info_list>();
    keys->add(PMIX_COLLECT_DATA, true);
    auto const all = std::make_shared<pmix_proc_t>(make_proc(state_->who.nspace, PMIX_RANK_WILDCARD));
    auto* cookie = done->expect_one();
    auto const status = PMIx_Fence_nb(all.get(), 1, keys->data(), keys->size(), completion::done, cookie);
    if (status != PMIX_SUCCESS) {
        completion::cancel(cookie);
        check(status, "PMIx_Fence_nb");
    }
    if (!done->wait(deadline)) {
        new std::pair(keys, all);  // the library still reads them
        throw_error(errc::timeout, "not all {} ranks came to the fence within {}", state_->who.world_size,
                    format_duration(deadline));
    }
    auto const outcome = done->status();
    if (outcome == PMIX_ERR_PARTIAL_SUCCESS || outcome == PMIX_ERR_LOST_CONNECTION || outcome == PMIX_ERR_PROC_ABORTED)
        throw_error(errc::peer_failed, "a rank ended before the fence was complete ({})", PMIx_Error_string(outcome));
    check(outcome, "PMIx_Fence_nb");
}

std::vector<std::byte> client::get_bytes(int rank, std::string_view key, duration deadline) {
    auto const found = get(make_proc(state_->who.nspace, static_cast<pmix_rank_t>(rank)), key, deadline);
    if (auto const* bytes = std::get_if<std::vector<std::byte>>(&found)) return *bytes;
    throw_error(errc::invalid_data, "key \"{}\" of rank {} holds no bytes", key, rank);
}

void client::finalize(duration deadline) {
    if (std::exchange(state_->finalized, true)) return;
    in_use = false;
    call_with_deadline(deadline, [] { return PMIx_Finalize(nullptr, 0); })->wait_or_throw(duration{0}, "PMIx_Finalize");
}

}  // namespace muster::pmix
