// Messages between this rank and others, sent and received without blocking.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/mpi/mpi_call.hpp"
#include "comm/mpi/mpi_tags.hpp"

namespace muster::detail {

/// The ranks between which messages go.
struct direct_world {
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0;
    int size = 1;
    int largest_tag = 32767;
    std::vector<std::string> const* hosts = nullptr;
};

/// Non-blocking sends and receives with one wait for all of them. Messages above 256 MiB go in pieces of that size, since MPI
/// counts in int. All receives are posted one after the other, before or after the sends.
class mpi_messages {
  public:
    void clear() noexcept;
    void receive(direct_world const& world, int peer, void* data, std::size_t bytes, int tag);     ///< throws mpi_error
    void send(direct_world const& world, int peer, void const* data, std::size_t bytes, int tag);  ///< throws mpi_error

    bool test();  ///< returns whether all have ended; never blocks; throws mpi_error
    void cancel_receives() noexcept;
    bool released() noexcept;                              ///< returns whether MPI no longer uses the memory
    void mark_pending(std::vector<bool>& ranks) noexcept;  ///< marks each rank whose message has not ended

  private:
    std::vector<MPI_Request> requests_;
    std::vector<int> peers_;  // of each request
    std::size_t first_receive_ = 0, receives_ = 0;
    std::size_t through_ = 0;  // this many requests, from the first on, have ended
};

/// Returns the first rank from which a message has arrived that belongs to the operation of `tag`, by traffic and sequence
/// number, but has another tag than `tag_from(rank)`: its arguments differ. Returns -1 if all agree. Asks about all ranks, or
/// `only` one. Throws mpi_error.
template <typename TagFrom>
int find_mismatch(direct_world const& world, int tag, TagFrom&& tag_from, int only = -1) {
    for (int k = 1; k < world.size; ++k) {
        int const peer = (world.rank + k) % world.size;
        if (only >= 0 && peer != only) continue;
        int found = 0;
        MPI_Status status;
        check(MPI_Iprobe(peer, MPI_ANY_TAG, world.comm, &found, &status), "MPI_Iprobe");
        if (found == 0 || status.MPI_TAG == blame_tag(world.largest_tag) || status.MPI_TAG == through_tag(world.largest_tag))
            continue;
        if (traffic_of(status.MPI_TAG) == traffic_of(tag) && sequence_of(status.MPI_TAG) == sequence_of(tag) &&
            status.MPI_TAG != tag_from(peer))
            return peer;
    }
    return -1;
}

/// Throws comm_error: rank `peer` is in another collective than this rank's reduction `what`.
[[noreturn]] void throw_mismatch(direct_world const& world, collective const& what, int peer);

}  // namespace muster::detail
