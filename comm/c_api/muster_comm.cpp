#include "comm/c_api/muster_comm.h"

#include <cstring>

#include "base/environment.hpp"
#include "comm/c_api/c_call.hpp"
#include "pmix/identity.hpp"

namespace {

using namespace muster;
using namespace muster::c_api;

void give(muster_handle** to, exchange_handle handle) {
    need(to, "the place for the handle");
    *to = new muster_handle{{}, std::move(handle)};
}

/// Submits by `start`, which fills in a handle; waits; hands the handle over or frees it.
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
        environment all = environment::capture();
        for (; variables != nullptr && *variables != nullptr; ++variables) {
            std::string_view const one = *variables;
            auto const equals = one.find('=');
            if (equals == std::string_view::npos || equals == 0)
                refuse(fmt::format("the variable \"{}\" is not NAME=VALUE; write it so", one));
            all.set(one.substr(0, equals), one.substr(equals + 1));
        }
        *made = new muster_comm(identify(all), read_exchange_options(all));
    });
}

int muster_comm_destroy(muster_comm* comm) {
    return guarded([&] { destroy(comm, "the communicator"); });
}

int muster_comm_rank(muster_comm const* comm) {
    return !is_usable(comm) ? -1 : comm->exchange.rank();
}
int muster_comm_size(muster_comm const* comm) {
    return !is_usable(comm) ? -1 : comm->exchange.size();
}
int muster_comm_local_rank(muster_comm const* comm) {
    return !is_usable(comm) ? -1 : comm->exchange.who().local_rank;
}
int muster_comm_local_size(muster_comm const* comm) {
    return !is_usable(comm) ? -1 : comm->exchange.who().local_size;
}
int muster_comm_cross_rank(muster_comm const* comm) {
    return !is_usable(comm) ? -1 : comm->exchange.who().node_rank;
}
int muster_comm_cross_size(muster_comm const* comm) {
    return !is_usable(comm) ? -1 : comm->exchange.who().node_count;
}
char const* muster_comm_backend(muster_comm const* comm) {
    return !is_usable(comm) ? "" : comm->exchange.backend().c_str();
}

char const* muster_comm_why_backend(muster_comm const* comm) {
    return !is_usable(comm) ? "" : comm->exchange.why_backend().c_str();
}

int muster_process_set_add(muster_comm* comm, int const* ranks, int count, int* set) {
    return guarded([&] {
        need(set, "the place for the number");
        if (count < 0 || (count > 0 && ranks == nullptr))
            refuse(fmt::format("{} ranks at {} are no list; give one", count, static_cast<void const*>(ranks)));
        *set = of(comm).add_process_set({ranks, static_cast<std::size_t>(count)});
    });
}
int muster_process_set_rank(muster_comm const* comm, int set, int* rank) {
    return guarded([&] { need(rank, "the place for the rank") = of(comm).rank_in(set); });
}
int muster_process_set_size(muster_comm const* comm, int set, int* size) {
    return guarded([&] { need(size, "the place for the size") = of(comm).size_of_set(set); });
}

int muster_allreduce_async(muster_comm* comm, muster_tensor const* tensor, int reduction, muster_call const* call,
                           muster_handle** handle) {
    return guarded([&] {
        need(handle, "the place for the handle");
        auto const what = parts_of(tensor, false);
        auto how = parts_of(call).call;
        how.shape = what.shape;
        give(handle, of(comm).allreduce(what.name, what.in, what.out, reduction_of(reduction), how));
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
    return guarded([&] {
        need(handle, "the place for the handle");
        auto const what = parts_of(tensor, true);
        auto how = parts_of(call).call;
        how.shape = what.shape;
        give(handle, of(comm).allgather(what.name, what.in, what.out, how));
    });
}

int muster_broadcast_async(muster_comm* comm, muster_tensor const* tensor, muster_call const* call, muster_handle** handle) {
    return guarded([&] {
        need(handle, "the place for the handle");
        auto const what = parts_of(tensor, false);
        auto const given = parts_of(call);
        auto how = given.call;
        how.shape = what.shape;
        // Only the root's input is read.
        tensor_view const in = what.in.data != nullptr ? what.in : what.out;
        give(handle, of(comm).broadcast(what.name, in, what.out, given.root, how));
    });
}

int muster_reducescatter_async(muster_comm* comm, muster_tensor const* tensor, int reduction, muster_call const* call,
                               muster_handle** handle) {
    return guarded([&] {
        need(handle, "the place for the handle");
        auto const what = parts_of(tensor, true);
        auto how = parts_of(call).call;
        how.shape = what.shape;
        give(handle, of(comm).reducescatter(what.name, what.in, what.out, reduction_of(reduction), how));
    });
}

int muster_alltoall_async(muster_comm* comm, muster_tensor const* tensor, muster_call const* call, muster_handle** handle) {
    return guarded([&] {
        need(handle, "the place for the handle");
        auto const what = parts_of(tensor, true);
        auto const given = parts_of(call);
        auto how = given.call;
        how.shape = what.shape;
        auto const ranks = static_cast<std::size_t>(of(comm).size_of_set(how.set));
        std::span<std::int64_t const> const splits{given.splits, given.splits == nullptr ? 0 : ranks};
        give(handle, of(comm).alltoall(what.name, what.in, splits, what.out, how));
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

int muster_poll(muster_handle const* handle) {
    if (!is_usable(handle)) return failed(MUSTER_E_USAGE, "the handle is null or has been freed");
    return handle->handle.poll() ? MUSTER_OK : MUSTER_PENDING;
}

int muster_wait(muster_handle const* handle, double seconds) {
    return guarded([&] { need(handle, "the handle").handle.wait(duration{seconds}); });
}

int muster_handle_order(muster_handle const* handle, void* stream) {
    return guarded([&] { need(handle, "the handle").handle.order(stream); });
}

int muster_handle_result(muster_handle const* handle, void const** data, size_t* bytes) {
    return guarded([&] {
        auto const result = need(handle, "the handle").handle.result();
        need(data, "the place for the address") = result.data;
        need(bytes, "the place for the size") = result.bytes();
    });
}

int muster_handle_rows(muster_handle const* handle, int64_t const** rows, int* count) {
    return guarded([&] {
        auto const all = need(handle, "the handle").handle.rows();
        need(rows, "the place for the rows") = all.data();
        need(count, "the place for their number") = static_cast<int>(all.size());
    });
}

int muster_handle_number(muster_handle const* handle, int* number) {
    return guarded([&] { need(number, "the place for the number") = need(handle, "the handle").handle.number(); });
}

void muster_handle_free(muster_handle* handle) {
    static_cast<void>(guarded([&] { destroy(handle, "the handle"); }));
}

int muster_timeline_start(muster_comm* comm, char const* folder, int mark_cycles) {
    return guarded([&] { of(comm).start_timeline(&need(folder, "the folder"), mark_cycles != 0); });
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
        std::size_t const room = need(size, "the place for the size");
        *size = text.size() + 1;
        if (buffer != nullptr && room >= *size) std::memcpy(buffer, text.c_str(), *size);
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
