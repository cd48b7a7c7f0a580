// NCCL's functions are found at run time, so that one build serves machines with and without it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/shared_library.hpp"

namespace muster::nccl {

// The necessary declarations of NCCL's documented ABI (nccl.h, "NCCL API"), so that the build does not need it.
// tests/gpu/abi_test.cpp compares them with nccl.h where that exists.
using comm_handle = struct comm_record*;      ///< ncclComm_t
using stream_handle = struct stream_record*;  ///< cudaStream_t
struct unique_id {
    char bytes[128];
};

/// ncclConfig_t as in NCCL 2.14, the version that it names: NCCL takes later fields from its defaults.
struct config {
    std::size_t size = sizeof(config);
    unsigned magic = 0xcafebeef;
    unsigned version = 21400;
    int blocking = 0;
    int unused = 0;  ///< later versions have a field here that they do not read from this one
};

inline constexpr int success = 0;
inline constexpr int system_error = 2;
inline constexpr int invalid_argument = 4;
inline constexpr int invalid_usage = 5;
inline constexpr int remote_error = 6;
inline constexpr int in_progress = 7;
inline constexpr int no_color = -1;
inline constexpr int scalar_on_host = 1;
inline constexpr int least_version = 21800;  ///< 2.18: ncclCommSplit

enum class type : int { i8 = 0, u8 = 1, i32 = 2, i64 = 4, f16 = 6, f32 = 7, f64 = 8, bf16 = 9 };  ///< ncclDataType_t
enum class op : int { sum = 0, product = 1, max = 2, min = 3, average = 4 };  ///< ncclRedOp_t; others are made as needed

/// The functions, as loaded or as a test gives them. A default one has none.
struct library {
    library() = default;
    /// Looks for every function; `missing` names those it lacks.
    explicit library(shared_library const& from);

    std::string missing;

    int (*get_version)(int*) = nullptr;
    char const* (*error_string)(int) = nullptr;
    char const* (*last_error)(comm_handle) = nullptr;
    int (*get_unique_id)(unique_id*) = nullptr;
    int (*init_rank)(comm_handle*, int, unique_id, int, config*) = nullptr;
    int (*split)(comm_handle, int, int, comm_handle*, config*) = nullptr;
    int (*async_error)(comm_handle, int*) = nullptr;
    int (*finalize)(comm_handle) = nullptr;
    int (*destroy)(comm_handle) = nullptr;
    int (*abort)(comm_handle) = nullptr;
    int (*make_scaled_sum)(op*, void*, type, int, comm_handle) = nullptr;
    int (*destroy_op)(op, comm_handle) = nullptr;
    int (*all_reduce)(void const*, void*, std::size_t, type, op, comm_handle, stream_handle) = nullptr;
    int (*reduce)(void const*, void*, std::size_t, type, op, int, comm_handle, stream_handle) = nullptr;
    int (*broadcast)(void const*, void*, std::size_t, type, int, comm_handle, stream_handle) = nullptr;
    int (*reduce_scatter)(void const*, void*, std::size_t, type, op, comm_handle, stream_handle) = nullptr;
    int (*all_gather)(void const*, void*, std::size_t, type, comm_handle, stream_handle) = nullptr;
    int (*send)(void const*, std::size_t, type, int, comm_handle, stream_handle) = nullptr;
    int (*receive)(void*, std::size_t, type, int, comm_handle, stream_handle) = nullptr;
    int (*group_start)() = nullptr;
    int (*group_end)() = nullptr;
};

/// Calls `visit("ncclGetVersion", member)` for every function, in the order above: the only list of the symbols' names.
template <typename Library, typename Visit>
void for_each_function(Library& of, Visit&& visit) {
    visit("ncclGetVersion", of.get_version);
    visit("ncclGetErrorString", of.error_string);
    visit("ncclGetLastError", of.last_error);
    visit("ncclGetUniqueId", of.get_unique_id);
    visit("ncclCommInitRankConfig", of.init_rank);
    visit("ncclCommSplit", of.split);
    visit("ncclCommGetAsyncError", of.async_error);
    visit("ncclCommFinalize", of.finalize);
    visit("ncclCommDestroy", of.destroy);
    visit("ncclCommAbort", of.abort);
    visit("ncclRedOpCreatePreMulSum", of.make_scaled_sum);
    visit("ncclRedOpDestroy", of.destroy_op);
    visit("ncclAllReduce", of.all_reduce);
    visit("ncclReduce", of.reduce);
    visit("ncclBroadcast", of.broadcast);
    visit("ncclReduceScatter", of.reduce_scatter);
    visit("ncclAllGather", of.all_gather);
    visit("ncclSend", of.send);
    visit("ncclRecv", of.receive);
    visit("ncclGroupStart", of.group_start);
    visit("ncclGroupEnd", of.group_end);
}

/// NCCL on this machine, or the reason why it cannot be used.
struct found_library {
    library const* use = nullptr;  ///< stays loaded until the process ends
    int version = 0;               ///< 22809 is 2.28.9
    std::string why_not;           ///< set if `use` is null
};

/// Loads libnccl.so.2, once. Thread safe. Never throws for a library that is missing or too old.
found_library const& find_library();

/// The same with libraries of these names, tried in order.
found_library find_library(std::span<std::string const> names);

/// Returns "2.28.9" for 22809. Pure.
std::string version_text(int version);

}  // namespace muster::nccl

namespace muster {

// The error of a call to NCCL.

/// An error of NCCL, with the call's name and NCCL's code. Its communicator is of no use any more, except after an invalid
/// argument.
class nccl_error : public library_error {
  public:
    nccl_error(std::string_view call, int native_code, std::string_view text) : library_error("NCCL", call, native_code, text) {}
};

}  // namespace muster
