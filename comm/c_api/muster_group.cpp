// The C interface's groups of tensors, and memory that the ranks of a node share.
#include <mutex>
#include <unordered_map>

#include "comm/c_api/c_call.hpp"
#include "comm/c_api/muster_comm.h"

namespace {

using namespace muster;
using namespace muster::c_api;

/// The owners of the memory given out, by its address.
struct given_buffers {
    std::mutex guard;
    std::unordered_map<void*, comm_buffer> all;
};
given_buffers& buffers() {
    static given_buffers* const given = new given_buffers;  // never destroyed: memory not given back stays valid to the end
    return *given;
}

}  // namespace

extern "C" {

int muster_allreduce_prepare(muster_comm* comm, char const* name, muster_tensor const* tensors, size_t count, int reduction,
                             muster_call const* call, muster_group** made) {
    return guarded([&] {
        need(made, "the place for the group");
        need(name, "the group's name");
        auto group = of(comm).prepare(name, tensors_of(tensors, count), reduction_of(reduction), parts_of(call).call);
        *made = table<muster_group>().add(std::move(group));
    });
}

int muster_allgather_group_async(muster_comm* comm, char const* name, muster_tensor const* tensors, size_t count,
                                 muster_call const* call, muster_handle** handle) {
    return guarded([&] {
        need(handle, "the place for the handle");
        need(name, "the group's name");
        give(handle, of(comm).allgather_group(name, tensors_of(tensors, count, true), parts_of(call).call));
    });
}

int muster_reducescatter_group_async(muster_comm* comm, char const* name, muster_tensor const* tensors, size_t count,
                                     int reduction, muster_call const* call, muster_handle** handle) {
    return guarded([&] {
        need(handle, "the place for the handle");
        need(name, "the group's name");
        give(handle,
             of(comm).reducescatter_group(name, tensors_of(tensors, count, true), reduction_of(reduction), parts_of(call).call));
    });
}

int muster_group_start(muster_group* group, muster_handle** handle) {
    return muster_group_start_on(group, nullptr, handle);
}

int muster_group_start_on(muster_group* group, void* stream, muster_handle** handle) {
    return guarded([&] { give(handle, need(group, "the group").group.start(stream)); });
}

void muster_group_free(muster_group* group) {
    static_cast<void>(guarded([&] { destroy(group, "the group"); }));
}

int muster_alloc(muster_comm* comm, size_t bytes, void** made) {
    return guarded([&] {
        need(made, "the place for the address");
        if (bytes == 0) refuse("0 bytes were asked for; ask for 1 at least");
        auto buffer = of(comm).allocate(bytes);
        void* const address = buffer.data();
        auto& given = buffers();
        std::scoped_lock const lock(given.guard);
        given.all.insert_or_assign(address, std::move(buffer));
        *made = address;
    });
}

int muster_free(void* memory) {
    return guarded([&] {
        if (memory == nullptr) return;
        comm_buffer last_owner;  // destroyed outside the lock
        auto& given = buffers();
        std::scoped_lock const lock(given.guard);
        auto const found = given.all.find(memory);
        if (found == given.all.end())
            refuse(fmt::format("{} was not given by muster_alloc, or has been freed; free memory of muster_alloc once", memory));
        last_owner = std::move(found->second);
        given.all.erase(found);
    });
}

}  // extern "C"
