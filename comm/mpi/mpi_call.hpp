// Checked MPI calls and owners of its handles.
#pragma once

#include <mpi.h>

#include <string>

#include "base/unique_handle.hpp"
#include "comm/backend/comm_error.hpp"

namespace muster::detail {

/// Returns MPI's text for a code.
inline std::string mpi_error_text(int code) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return "unknown error";
    return {text, static_cast<std::size_t>(length)};
}

/// Throws mpi_error unless `code` is MPI_SUCCESS.
inline void check(int code, char const* call) {
    if (code != MPI_SUCCESS) [[unlikely]]
        throw mpi_error(call, code, mpi_error_text(code));
}

/// MPI counts in int, and algorithms within MPI have multiplied ints into bytes: larger messages go in pieces of this size.
inline constexpr std::size_t largest_message_bytes = std::size_t{1} << 28;

inline bool mpi_is_running() noexcept {
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    return initialized != 0 && finalized == 0;
}

struct mpi_comm_traits {
    using type = MPI_Comm;
    static type null() noexcept { return MPI_COMM_NULL; }
    static void close(type comm) noexcept {
        if (mpi_is_running()) MPI_Comm_free(&comm);
    }
};
using unique_comm = unique_handle<mpi_comm_traits>;

struct mpi_op_traits {
    using type = MPI_Op;
    static type null() noexcept { return MPI_OP_NULL; }
    static void close(type op) noexcept {
        if (mpi_is_running()) MPI_Op_free(&op);
    }
};
using unique_op = unique_handle<mpi_op_traits>;

struct mpi_type_traits {
    using type = MPI_Datatype;
    static type null() noexcept { return MPI_DATATYPE_NULL; }
    static void close(type datatype) noexcept {
        if (mpi_is_running()) MPI_Type_free(&datatype);
    }
};
using unique_type = unique_handle<mpi_type_traits>;

}  // namespace muster::detail
