#include "bench/gpu/step/step_graph.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace muster {

step_graph::step_graph(cuda::device const& on, cuda::stream_handle stream, bool capture, std::vector<step_part> parts)
    : on_(on), stream_(stream), captures_(capture), parts_(std::move(parts)) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        if (rows_.empty() || rows_.back().in_graph != parts_[i].in_graph) {
            rows_.emplace_back();
            rows_.back().first = i;
            rows_.back().in_graph = parts_[i].in_graph;
        }
        ++rows_.back().count;
    }
}

void step_graph::put(row const& of) {
    for (std::size_t i = of.first; i < of.first + of.count; ++i) parts_[i].put();
}

void step_graph::capture(row& of) {
    cuda::driver const& with = on_.with();
    auto const require = [&](int code, char const* call) {
        if (code == cuda::success) return;
        throw error(errc::unavailable, fmt::format("the step cannot be captured into a graph: {}: {}; give --graph off, or parts",
                                                   call, cuda::describe(with, code)));
    };
    require(with.capture_begin(stream_, cuda::capture_this_thread), "cuStreamBeginCapture");
    cuda::graph_handle captured = nullptr;
    try {
        put(of);
    } catch (...) {
        with.capture_end(stream_, &captured);  // else the stream takes nothing any more
        if (captured != nullptr) with.graph_destroy(captured);
        throw;
    }
    require(with.capture_end(stream_, &captured), "cuStreamEndCapture");
    cuda::ready_graph ready = nullptr;
    int const code = with.graph_instantiate(&ready, captured, 0);
    with.graph_destroy(captured);
    require(code, "cuGraphInstantiate");
    of.graph.reset({&on_, ready});
    ++graphs_;
}

void step_graph::run() {
    bool const as_graphs = captures_ && runs_++ > 0;
    cuda::driver const& with = on_.with();
    for (auto& each : rows_) {
        if (!as_graphs || !each.in_graph) {
            put(each);
            continue;
        }
        if (!each.graph) capture(each);
        cuda::check(with, with.graph_launch(each.graph.get().handle, stream_), "cuGraphLaunch");
    }
}

}  // namespace muster
