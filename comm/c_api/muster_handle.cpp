// The C interface's handles wait for requests and give their results.
#include "comm/c_api/c_call.hpp"
#include "comm/c_api/muster_comm.h"

namespace {

using namespace muster;
using namespace muster::c_api;

std::vector<exchange_handle const*> all_of(muster_handle const* const* handles, std::size_t count) {
    if (count > 0) need(handles, "the list of handles");
    std::vector<exchange_handle const*> all;
    for (std::size_t i = 0; i < count; ++i) {
        if (!is_usable(handles[i])) refuse(fmt::format("handle {} of {} is null or has been freed", i, count));
        all.push_back(&need(handles[i], "the handle").handle);
    }
    return all;
}

int wait_for(muster_handle const* handle, double seconds, bool to_its_end) {
    bool ended = false;
    int const code = guarded([&] { ended = need(handle, "the handle").handle.wait_for(duration{seconds}, to_its_end); });
    return code != MUSTER_OK || ended ? code : MUSTER_PENDING;
}

}  // namespace

extern "C" {

int muster_poll(muster_handle const* handle) {
    if (!is_usable(handle)) return failed(MUSTER_E_USAGE, "the handle is null or has been freed");
    return need(handle, "the handle").handle.poll() ? MUSTER_OK : MUSTER_PENDING;
}

int muster_wait(muster_handle const* handle, double seconds) {
    return guarded([&] { need(handle, "the handle").handle.wait(duration{seconds}); });
}

int muster_wait_for(muster_handle const* handle, double seconds) {
    return wait_for(handle, seconds, false);
}

int muster_wait_in_turns(muster_handle const* handle, double seconds) {
    return wait_for(handle, seconds, true);
}

int muster_wait_many(muster_handle const* const* handles, size_t count, double seconds) {
    return guarded([&] { exchange_handle::wait_all(all_of(handles, count), duration{seconds}); });
}

int muster_wait_any(muster_handle const* const* handles, size_t count, double seconds, size_t* which) {
    bool is_over = false;
    int const code = guarded([&] {
        need(which, "the place for the number");
        auto const first = exchange_handle::wait_any(all_of(handles, count), duration{seconds});
        if (first) *which = *first;
        is_over = !first;
    });
    return is_over ? MUSTER_PENDING : code;
}

int muster_handle_then(muster_handle const* handle, void (*call)(void*), void* state) {
    return guarded([&] {
        if (call == nullptr) refuse("the function to call is null");
        need(handle, "the handle").handle.then(call, state);
    });
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

int muster_handle_result_of(muster_handle const* handle, size_t index, void const** data, size_t* bytes) {
    return guarded([&] {
        auto const result = need(handle, "the handle").handle.result_of(index);
        need(data, "the place for the address") = result.data;
        need(bytes, "the place for the size") = result.bytes();
    });
}

int muster_handle_rows_of(muster_handle const* handle, size_t index, int64_t const** rows, int* count) {
    return guarded([&] {
        auto const all = need(handle, "the handle").handle.rows_of(index);
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

}  // extern "C"
