// Writes the output of ranks on other nodes in whole lines.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "launch/ranks/output_writer.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/wire/frame_channel.hpp"

namespace muster {

/// Takes the pieces that shims send, for any number of ranks in any order, and writes lines. Each shim may send a window of bytes
/// and then as many bytes as have been taken; while the writer is congested, none are. So a slow reader holds the ranks, and the
/// connections stay free for other messages. Used from the loop's thread.
class remote_output {
  public:
    /// Each shim may send `window` bytes ahead. `make_room` tells a rank's shim how many more bytes it may send. `loop` and
    /// `writer` must outlive this.
    remote_output(event_loop& loop, output_writer& writer, std::size_t ranks, std::size_t window,
                  std::function<void(int rank, std::size_t bytes)> make_room);

    /// Adds a rank after the others.
    void add();
    /// Sets what precedes this rank's lines.
    void set_format(int rank, line_format const& how);
    /// Sets the tag of its future lines, and whether they are shown.
    void set_tag(int rank, line_format const& how);
    void take(int rank, wire::output_piece const& piece);
    /// Notes that this rank sends no more: writes its unfinished lines.
    void finish(int rank);
    /// Call it when the writer may have room again.
    void resume();

    /// Returns how many bytes a shim may send ahead, in a world of `ranks` with `on_one_connection` on each connection: together
    /// they must fill neither the launcher's memory nor what the kernel keeps for a connection.
    static std::size_t window(std::size_t ranks, std::size_t on_one_connection = 1);

  private:
    struct one_stream {
        int target;
        bool terminal;
        line_splitter lines;
    };
    struct one_rank {
        one_stream out, err;
        std::size_t taken = 0;  ///< bytes that its shim does not know about
    };
    void make_room(int rank);
    void flush_partials();

    event_loop& loop_;
    output_writer& writer_;
    std::deque<one_rank> ranks_;  ///< a deque: adding one moves no other, since the writer knows streams by their addresses
    std::function<void(int, std::size_t)> make_room_;
    std::size_t window_;
    std::vector<int> held_;  ///< ranks to notify when there is room
    bool flush_pending_ = false;
};

}  // namespace muster
