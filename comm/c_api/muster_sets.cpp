// The C interface's process sets, messages between two ranks, and what was built in.
#include <string_view>

#include "comm/c_api/c_call.hpp"
#include "comm/c_api/muster_comm.h"
#include "comm/cuda/driver.hpp"
#include "comm/cuda/fusion_kernels.hpp"
#include "comm/mpi/mpi_backend.hpp"
#include "comm/nccl/library/nccl_library.hpp"
#include "pmix/client/client.hpp"

namespace {

using namespace muster;
using namespace muster::c_api;

int version_of(cuda::driver const* driver) {
    int version = 0;
    return driver != nullptr && driver->version(&version) == 0 ? version : 0;
}

int found(std::string_view what) {
    if (what == "mpi") return mpi_unavailable({}, {}) ? 0 : 1;
    if (what == "pmix") return pmix::client_is_available() ? 1 : 0;
    if (what == "nccl") return nccl::find_library().use != nullptr ? nccl::find_library().version : 0;
    if (what == "cuda") return version_of(cuda::find_driver().use);
    if (what == "cuda_kernels") return cuda::kernels_missing() ? 0 : 1;
    return 0;
}

/// Returns the tensor with a name: that of a message may lack one.
muster_tensor named(muster_tensor const* given) {
    auto copy = whole(&need(given, "the tensor"), "the tensor");
    copy.struct_size = sizeof copy;
    if (copy.name == nullptr) copy.name = "message";
    return copy;
}

}  // namespace

extern "C" {

int muster_built(char const* what) {
    int is = 0;
    static_cast<void>(guarded([&] { is = found(&need(what, "the name of what was built")); }));
    return is;
}

int muster_process_set_add(muster_comm* comm, int const* ranks, int count, int* set) {
    return guarded([&] {
        need(set, "the place for the number");
        *set = of(comm).add_process_set(list_of(ranks, count));
    });
}
int muster_process_set_make(muster_comm* comm, int const* ranks, int count, char const* name, int* set) {
    return guarded([&] {
        need(set, "the place for the number");
        *set = of(comm).make_process_set(list_of(ranks, count), &need(name, "the set's name"));
    });
}
int muster_process_set_remove(muster_comm* comm, int set) {
    return guarded([&] { of(comm).remove_process_set(set); });
}
int muster_process_set_rank(muster_comm const* comm, int set, int* rank) {
    return guarded([&] { need(rank, "the place for the rank") = of(comm).rank_in(set); });
}
int muster_process_set_size(muster_comm const* comm, int set, int* size) {
    return guarded([&] { need(size, "the place for the size") = of(comm).size_of_set(set); });
}

int muster_send_async(muster_comm* comm, muster_tensor const* tensor, int peer, int tag, muster_call const* call,
                      muster_handle** handle) {
    return guarded([&] {
        need(handle, "the place for the handle");
        auto const given = named(tensor);
        give(handle, of(comm).send(parts_of(&given, false).in, peer, tag, parts_of(call).call));
    });
}

int muster_receive_async(muster_comm* comm, muster_tensor const* tensor, int peer, int tag, muster_call const* call,
                         muster_handle** handle) {
    return guarded([&] {
        need(handle, "the place for the handle");
        auto const given = named(tensor);
        give(handle, of(comm).receive(parts_of(&given, false).out, peer, tag, parts_of(call).call));
    });
}

}  // extern "C"
