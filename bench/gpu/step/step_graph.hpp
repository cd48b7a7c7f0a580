// A step as parts in a row on one stream: puts them there call by call, or launches them as graphs captured once.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/cuda/handles.hpp"

namespace muster {

/// What puts one part on the stream. It puts the same each time: whatever differs is read from device memory.
struct step_part {
    std::function<void()> put;
    bool in_graph = true;  ///< it may be captured: it waits for nothing on the host
};

/// The first run puts every part as it stands, so that libraries load and set up what they need; the second captures each row of
/// parts that may be captured as one graph; all further ones launch the graphs, the other parts between them. Not thread safe.
class step_graph {
  public:
    /// With `capture` false every run is as the first.
    step_graph(cuda::device const& on, cuda::stream_handle stream, bool capture, std::vector<step_part> parts);

    /// Throws errc::unavailable where a part cannot be captured, cuda_error, and what a part throws.
    void run();

    /// How many graphs a run launches; 0 before the second.
    std::size_t graphs() const noexcept { return graphs_; }

  private:
    /// Parts that follow each other and go the same way.
    struct row {
        std::size_t first = 0, count = 0;
        bool in_graph = true;
        cuda::unique_graph graph;
    };
    void put(row const& of);
    void capture(row& of);

    cuda::device const& on_;
    cuda::stream_handle stream_;
    bool captures_;
    std::vector<step_part> parts_;
    std::vector<row> rows_;
    std::size_t runs_ = 0, graphs_ = 0;
};

}  // namespace muster
