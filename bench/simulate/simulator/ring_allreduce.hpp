// A model of MPI's own non-blocking allreduce: a ring for large tensors, recursive doubling for small ones.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <vector>

namespace muster {

/// Not muster's code but that of an MPI library: Open MPI's libnbc sends large tensors round a ring too. In place on `data`.
/// Messages up to payload_limit carry their contents and are reduced; larger ones only take their time.
class ring_allreduce {
  public:
    ring_allreduce(void* data, std::size_t count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, int tag);

    /// True once it is through. Never blocks.
    bool advance();

    /// Those under way, for who waits.
    std::array<MPI_Request, 2>& requests() noexcept { return requests_; }

  private:
    struct part {
        std::size_t first = 0, count = 0;
    };
    /// One round: what is sent to whom, what is received from whom, and whether it is reduced or replaces what was there.
    struct round {
        int to = -1, from = -1;
        part sent, received;
        bool reduces = false;
    };
    part chunk(int index) const noexcept;
    void plan_ring();
    void plan_doubling();
    void begin();
    void end();

    std::byte* data_;
    std::size_t count_, element_bytes_;
    MPI_Datatype type_;
    MPI_Op op_;
    MPI_Comm comm_;
    int tag_, rank_ = 0, size_ = 1;
    std::vector<round> rounds_;
    std::size_t at_ = 0;
    bool under_way_ = false;
    std::vector<std::byte> scratch_;
    std::array<MPI_Request, 2> requests_{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

}  // namespace muster
