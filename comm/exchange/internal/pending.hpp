// A request on its way from the thread that submitted it to its end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "comm/exchange/request.hpp"

namespace muster::detail {

using exchange_clock = std::chrono::steady_clock;

/// Where a tensor is read from and written to.
struct tensor_io {
    tensor_view in;
    tensor_view out;  ///< data null: the exchange gives it memory (allgather, alltoall, reducescatter)
};

/// Written by the submitting thread until it is handed over, then by the exchange's thread until `state` says that it has ended,
/// from when on it does not change any more. `deadline` and `waited` may be changed by any thread meanwhile.
struct pending {
    enum class phase : std::uint8_t { waiting, done, failed };

    request what;
    std::vector<tensor_io> tensors;
    int set = 0;
    exchange_clock::time_point submitted;
    std::atomic<exchange_clock::duration::rep> deadline{0};  ///< since the clock's epoch; 0: without end
    std::atomic<bool> waited{false};                         ///< a thread blocks until it ends

    // results; `state` and `waited` in one order for all threads, so that either the end sees who waits or that one sees the end
    std::atomic<phase> state{phase::waiting};
    errc code = errc::peer_failed;
    std::string fault;
    std::vector<int> culprits;
    std::unique_ptr<std::byte[]> memory;  ///< of an output that the exchange gave
    tensor_view result;                   ///< of a single tensor: where its output is, and its elements
    std::vector<std::int64_t> rows;       ///< allgather, alltoall: rows that came from each rank
    int number = 0;                       ///< join: the last rank; include: the number of the new set

    // the exchange's thread only
    bool stall_told = false;
    std::uint32_t trace_name = 0;
    exchange_clock::time_point announced{};
    std::size_t tensors_left = 0;
};

}  // namespace muster::detail
