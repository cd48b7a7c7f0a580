// Messages between two ranks: sends, times and checks them.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/collectives/collectives_values.hpp"
#include "comm/communicator.hpp"

namespace muster {

/// osu_latency, osu_bw and osu_bibw over communicator::sendrecv(). Both ranks of the pair make one and call the same functions in the
/// same order; the others do nothing. One that is not of the pair holds no memory.
class pair_traffic {
  public:
    pair_traffic(communicator& all, int first, int second);

    bool mine() const noexcept { return peer_ >= 0; }

    /// Microseconds of one message of so many bytes from one rank to the other: half of there and back, over `rounds`.
    double latency_us(std::size_t bytes, int rounds);

    /// Microseconds of a message where `window` of them are on their way at a time, over `rounds` windows; each ends with a short
    /// answer. `both`: each rank sends as many as it receives, and this is the time of two messages.
    double window_us(std::size_t bytes, int window, int rounds, bool both);

    /// Bytes that arrived wrong in all that was called since this was last asked.
    std::size_t take_wrong() noexcept;

  private:
    void make(std::size_t bytes, int slots);
    tensor_view sent(std::size_t bytes);
    tensor_view received(std::size_t bytes, int slot);
    void check(std::size_t bytes, int slots);
    void meet();

    communicator& all_;
    int peer_ = -1;
    bool first_ = false;
    aligned_vector<std::byte> out_, in_;
    std::size_t slot_bytes_ = 0;
    std::size_t wrong_ = 0;
    unsigned seed_ = 0;
    std::vector<operation> under_way_;
};

}  // namespace muster
