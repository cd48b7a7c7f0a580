// NCCL's functions are found at run time, so that one build serves machines with and without it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "comm/cuda/library_functions.hpp"

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
    explicit library(shared_library const& file) : from(file) {}

    library_functions from;

    int (*get_version)(int*) = from["ncclGetVersion"];
    char const* (*error_string)(int) = from["ncclGetErrorString"];
    char const* (*last_error)(comm_handle) = from["ncclGetLastError"];
    int (*get_unique_id)(unique_id*) = from["ncclGetUniqueId"];
    int (*init_rank)(comm_handle*, int, unique_id, int, config*) = from["ncclCommInitRankConfig"];
    int (*split)(comm_handle, int, int, comm_handle*, config*) = from["ncclCommSplit"];
    int (*async_error)(comm_handle, int*) = from["ncclCommGetAsyncError"];
    int (*finalize)(comm_handle) = from["ncclCommFinalize"];
    int (*destroy)(comm_handle) = from["ncclCommDestroy"];
    int (*abort)(comm_handle) = from["ncclCommAbort"];
    int (*make_scaled_sum)(op*, void*, type, int, comm_handle) = from["ncclRedOpCreatePreMulSum"];
    int (*destroy_op)(op, comm_handle) = from["ncclRedOpDestroy"];
    int (*all_reduce)(void const*, void*, std::size_t, type, op, comm_handle, stream_handle) = from["ncclAllReduce"];
    int (*reduce)(void const*, void*, std::size_t, type, op, int, comm_handle, stream_handle) = from["ncclReduce"];
    int (*broadcast)(void const*, void*, std::size_t, type, int, comm_handle, stream_handle) = from["ncclBroadcast"];
    int (*reduce_scatter)(void const*, void*, std::size_t, type, op, comm_handle, stream_handle) = from["ncclReduceScatter"];
    int (*all_gather)(void const*, void*, std::size_t, type, comm_handle, stream_handle) = from["ncclAllGather"];
    int (*send)(void const*, std::size_t, type, int, comm_handle, stream_handle) = from["ncclSend"];
    int (*receive)(void*, std::size_t, type, int, comm_handle, stream_handle) = from["ncclRecv"];
    int (*group_start)() = from["ncclGroupStart"];
    int (*group_end)() = from["ncclGroupEnd"];
};

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
