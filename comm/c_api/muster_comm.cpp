#include "comm/c_api/muster_comm.h"

#include <algorithm>

#include "base/environment.hpp"
#include "comm/backend/process_set.hpp"
#include "comm/backend/speaker.hpp"
#include "comm/c_api/c_call.hpp"
#include "pmix/identity.hpp"

namespace {

using namespace muster;
using namespace muster::c_api;

/// Returns what is wrong with the ranks of a communicator of some; or "".
std::string fault_of_members(std::span<int const> ranks, identity const& whole, std::string_view backend) {
    std::vector<int> sorted(ranks.begin(), ranks.end());
    std::sort(sorted.begin(), sorted.end());
    if (sorted.empty() || sorted.front() < 0 || sorted.back() >= whole.world_size ||
        std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        return fmt::format("its ranks must be distinct and lie in 0 … {}", whole.world_size - 1);
    if (!std::binary_search(sorted.begin(), sorted.end(), whole.rank))
        return "this rank is not among its ranks; only they call this";
    if (!backend.empty() && backend != "self" && backend != "shm" && backend != "mpi" && backend != "tcp")
        return fmt::format("backend {} serves all ranks only; ask for shm, mpi or tcp, or leave it open", backend);
    return {};
}

/// Keeps only the addresses of these ranks.
void keep_members(std::vector<std::string>& addresses, std::span<int const> ranks) {
    if (addresses.empty()) return;
    std::vector<std::string> kept;
    for (int const rank : ranks) kept.push_back(addresses.at(static_cast<std::size_t>(rank)));
    addresses = std::move(kept);
}

/// Submits one tensor: start(what, given, how) gives the handle. `own_size`: as parts_of() takes it.
template <typename Start>
int submit(muster_tensor const* tensor, bool own_size, muster_call const* call, muster_handle** handle, Start&& start) noexcept {
    return guarded([&] {
        need(handle, "the place for the handle");
        auto const what = parts_of(tensor, own_size);
        auto const given = parts_of(call);
        auto how = given.call;
        how.shape = what.shape;
        give(handle, start(what, given, how));
    });
}

/// Submits by `start`, which sets a handle; waits; then passes the handle on or frees it.
template <typename Start>
int wait_for(muster_handle** to, Start&& start) noexcept {
    muster_handle* handle = nullptr;
    int code = start(&handle);
    if (code == MUSTER_OK) code = muster_wait(handle, 0);
    if (code == MUSTER_OK && to != nullptr)
        *to = handle;
    else
        muster_handle_free(handle);
    return code;
}

}  // namespace

extern "C" {

int muster_comm_abi(void) {
    return MUSTER_COMM_ABI;
}

int muster_comm_create(muster_comm** made) {
    return muster_comm_create_with(nullptr, made);
}

int muster_comm_create_with(char const* const* variables, muster_comm** made) {
    return guarded([&] {
        need(made, "the place for the communicator");
        *made = join_world(rank_setting(variables));
    });
}

int muster_comm_create_of(char const* const* variables, int const* ranks, int count, char const* name, muster_comm** made) {
    return guarded([&] {
        need(made, "the place for the communicator");
        need(name, "the communicator's name");
        rank_setting const setting(variables);
        auto const all = setting.variables();
        auto const whole = identify(all);
        auto options = read_exchange_options(all);
        // The communicator of all ranks writes files of these names.
        options.timeline_folder.clear();
        options.flight_folder.clear();
        auto const members = list_of(ranks, count);
        auto const place = std::find(members.begin(), members.end(), whole.rank);
        if (auto const fault = fault_of_members(members, whole, options.comm.backend); !fault.empty())
            refuse(fmt::format("communicator \"{}\" ({}): {}", name, speaker(whole), fault));
        // Nothing says which ranks share one of several nodes.
        if (options.comm.backend.empty() && whole.node_count > 1 && count > 1)
            options.comm.backend = options.comm.addresses.empty() ? "mpi" : "tcp";
        options.comm.members.assign(members.begin(), members.end());
        keep_members(options.comm.addresses, members);
        options.comm.loss = setting.watch(members);
        *made = table<muster_comm>().add(
            identity_of_member(whole, members, static_cast<std::size_t>(place - members.begin()), name), options);
    });
}

int muster_comm_address(char* buffer, size_t* size) {
    return guarded([&] {
        auto const variables = environment::capture();
        copy_text(own_address(identify(variables).host, variables), buffer, need(size, "the place for the size"));
    });
}

int muster_comm_destroy(muster_comm* comm) {
    return guarded([&] { destroy(comm, "the communicator"); });
}

int muster_comm_abandon(muster_comm* comm) {
    // An exchange that is destroyed while an exception unwinds does not wait.
    enum class unwinding { now };
    struct destruction {
        muster_comm* comm;
        int& code;
        ~destruction() { code = muster_comm_destroy(comm); }
    };
    int code = MUSTER_OK;
    try {
        destruction const when_thrown{comm, code};
        throw unwinding{};
    } catch (unwinding const&) {
    }
    return code;
}

int muster_comm_rank(muster_comm const* comm) {
    return !is_usable(comm) ? -1 : of(comm).rank();
}
int muster_comm_size(muster_comm const* comm) {
    return !is_usable(comm) ? -1 : of(comm).size();
}
int muster_comm_local_rank(muster_comm const* comm) {
    return !is_usable(comm) ? -1 : of(comm).who().local_rank;
}
int muster_comm_local_size(muster_comm const* comm) {
    return !is_usable(comm) ? -1 : of(comm).who().local_size;
}
int muster_comm_cross_rank(muster_comm const* comm) {
    return !is_usable(comm) ? -1 : of(comm).who().node_rank;
}
int muster_comm_cross_size(muster_comm const* comm) {
    return !is_usable(comm) ? -1 : of(comm).who().node_count;
}
char const* muster_comm_backend(muster_comm const* comm) {
    return !is_usable(comm) ? "" : of(comm).backend().c_str();
}

char const* muster_comm_device_backend(muster_comm const* comm) {
    return !is_usable(comm) ? "" : of(comm).device_backend().data();
}

char const* muster_comm_why_backend(muster_comm const* comm) {
    return !is_usable(comm) ? "" : of(comm).why_backend().c_str();
}

int muster_allreduce_async(muster_comm* comm, muster_tensor const* tensor, int reduction, muster_call const* call,
                           muster_handle** handle) {
    return submit(tensor, false, call, handle, [&](auto const& what, auto const&, auto const& how) {
        return of(comm).allreduce(what.name, what.in, what.out, reduction_of(reduction), how);
    });
}

int muster_allreduce_group_async(muster_comm* comm, char const* name, muster_tensor const* tensors, size_t count, int reduction,
                                 muster_call const* call, muster_handle** handle) {
    return guarded([&] {
        need(handle, "the place for the handle");
        need(name, "the group's name");
        give(handle, of(comm).allreduce_group(name, tensors_of(tensors, count), reduction_of(reduction), parts_of(call).call));
    });
}

int muster_allgather_async(muster_comm* comm, muster_tensor const* tensor, muster_call const* call, muster_handle** handle) {
    return submit(tensor, true, call, handle, [&](auto const& what, auto const&, auto const& how) {
        return of(comm).allgather(what.name, what.in, what.out, how);
    });
}

int muster_broadcast_async(muster_comm* comm, muster_tensor const* tensor, muster_call const* call, muster_handle** handle) {
    return submit(tensor, false, call, handle, [&](auto const& what, auto const& given, auto const& how) {
        // The root's input is the only one that is read.
        tensor_view const in = what.in.data != nullptr ? what.in : what.out;
        return of(comm).broadcast(what.name, in, what.out, given.root, how);
    });
}

int muster_reducescatter_async(muster_comm* comm, muster_tensor const* tensor, int reduction, muster_call const* call,
                               muster_handle** handle) {
    return submit(tensor, true, call, handle, [&](auto const& what, auto const&, auto const& how) {
        return of(comm).reducescatter(what.name, what.in, what.out, reduction_of(reduction), how);
    });
}

int muster_alltoall_async(muster_comm* comm, muster_tensor const* tensor, muster_call const* call, muster_handle** handle) {
    return submit(tensor, true, call, handle, [&](auto const& what, auto const& given, auto const& how) {
        auto const ranks = static_cast<std::size_t>(of(comm).size_of_set(how.set));
        std::span<std::int64_t const> const splits{given.splits, given.splits == nullptr ? 0 : ranks};
        return of(comm).alltoall(what.name, what.in, splits, what.out, how);
    });
}

int muster_barrier_async(muster_comm* comm, muster_call const* call, muster_handle** handle) {
    return guarded([&] {
        need(handle, "the place for the handle");
        give(handle, of(comm).barrier(parts_of(call).call.set));
    });
}

int muster_join_async(muster_comm* comm, muster_call const* call, muster_handle** handle) {
    return guarded([&] {
        need(handle, "the place for the handle");
        give(handle, of(comm).join(parts_of(call).call.set));
    });
}

int muster_allreduce(muster_comm* comm, muster_tensor const* tensor, int reduction, muster_call const* call) {
    return wait_for(nullptr, [&](muster_handle** to) { return muster_allreduce_async(comm, tensor, reduction, call, to); });
}
int muster_allreduce_group(muster_comm* comm, char const* name, muster_tensor const* tensors, size_t count, int reduction,
                           muster_call const* call) {
    return wait_for(nullptr, [&](muster_handle** to) {
        return muster_allreduce_group_async(comm, name, tensors, count, reduction, call, to);
    });
}
int muster_allgather(muster_comm* comm, muster_tensor const* tensor, muster_call const* call, muster_handle** handle) {
    return wait_for(handle, [&](muster_handle** to) { return muster_allgather_async(comm, tensor, call, to); });
}
int muster_broadcast(muster_comm* comm, muster_tensor const* tensor, muster_call const* call) {
    return wait_for(nullptr, [&](muster_handle** to) { return muster_broadcast_async(comm, tensor, call, to); });
}
int muster_reducescatter(muster_comm* comm, muster_tensor const* tensor, int reduction, muster_call const* call,
                         muster_handle** handle) {
    return wait_for(handle, [&](muster_handle** to) { return muster_reducescatter_async(comm, tensor, reduction, call, to); });
}
int muster_alltoall(muster_comm* comm, muster_tensor const* tensor, muster_call const* call, muster_handle** handle) {
    return wait_for(handle, [&](muster_handle** to) { return muster_alltoall_async(comm, tensor, call, to); });
}
int muster_barrier(muster_comm* comm, muster_call const* call) {
    return wait_for(nullptr, [&](muster_handle** to) { return muster_barrier_async(comm, call, to); });
}
int muster_join(muster_comm* comm, muster_call const* call, int* last_rank) {
    muster_handle* handle = nullptr;
    int code = wait_for(&handle, [&](muster_handle** to) { return muster_join_async(comm, call, to); });
    if (code == MUSTER_OK && last_rank != nullptr) code = muster_handle_number(handle, last_rank);
    muster_handle_free(handle);
    return code;
}

int muster_timeline_start(muster_comm* comm, char const* folder, int mark_cycles) {
    return guarded([&] { of(comm).start_timeline(&need(folder, "the folder"), mark_cycles != 0); });
}
int muster_timeline_start_file(muster_comm* comm, char const* path, int mark_cycles) {
    return guarded([&] { of(comm).start_timeline_file(&need(path, "the path"), mark_cycles != 0); });
}
int muster_timeline_stop(muster_comm* comm) {
    return guarded([&] { of(comm).stop_timeline(); });
}

int muster_counters(muster_comm const* comm, int format, char* buffer, size_t* size) {
    return guarded([&] {
        if (format != MUSTER_JSON && format != MUSTER_PROMETHEUS)
            refuse(fmt::format("{} is no format; give MUSTER_JSON or MUSTER_PROMETHEUS", format));
        auto const values = of(comm).count();
        std::string const text =
            format == MUSTER_JSON ? to_json(values, of(comm).rank()) : to_prometheus(values, of(comm).rank());
        copy_text(text, buffer, need(size, "the place for the size"));
    });
}

char const* muster_last_error(void) {
    return last().message.c_str();
}

int muster_last_error_ranks(int const** ranks) {
    if (ranks != nullptr) *ranks = last().ranks.data();
    return static_cast<int>(last().ranks.size());
}

}  // extern "C"
