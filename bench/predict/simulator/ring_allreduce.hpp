// A model of MPI's non-blocking allreduce: a ring for large tensors, recursive doubling for small ones.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <vector>

namespace muster {

/// How many rounds each of the ring's two passes takes at most, and a message's latency in it. In a ring of more ranks one round stands for
/// several, which are alike: the same bytes and latencies. Before the ranks start.
void set_ring_model(int most_rounds, double latency_s) noexcept;

/// Not muster's code but that of an MPI library: Open MPI's libnbc sends large tensors round a ring too. In place on `data`.
/// Messages up to payload_limit carry their contents and are reduced; larger ones only take their time.
class ring_allreduce {
  public:
    ring_allreduce(void* data, std::size_t count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, int tag);

    /// True once it is through. Never blocks.
    bool advance();

    /// When the latencies of rounds that one stands for are over; 0: nothing but messages is waited for.
    double goes_on_at() const noexcept { return arrived_ ? goes_on_at_ : 0; }

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
        int stands_for = 1;  ///< rounds of the ring, which are alike, at once
    };
    part chunk(int index) const noexcept;
    void plan_ring();
    void plan_doubling();
    void begin();
    bool arrived();
    void end();

    std::byte* data_;
    std::size_t count_, element_bytes_;
    MPI_Datatype type_;
    MPI_Op op_;
    MPI_Comm comm_;
    int tag_, rank_ = 0, size_ = 1;
    std::vector<round> rounds_;
    std::size_t at_ = 0;
    bool under_way_ = false, arrived_ = false;
    double goes_on_at_ = 0;
    std::vector<std::byte> scratch_;
    std::array<MPI_Request, 2> requests_{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

}  // namespace muster
