// The output of ranks on other nodes, written in whole lines.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "launch/ranks/output_writer.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/wire/frame_channel.hpp"

namespace muster {

/// Takes the pieces that shims send, of any number of ranks in any order, and writes lines. Each shim may send a window of bytes and
/// then so many as have been taken; none are while the writer is congested. So a reader that does not read holds the ranks, and the
/// connections stay free for what else goes over them. Used from the loop's thread.
class remote_output {
  public:
    /// Each shim may send `window` bytes ahead. `make_room` tells a rank's shim that it may send so many bytes more. `loop` and `writer` must outlive this.
    remote_output(event_loop& loop, output_writer& writer, std::size_t ranks, std::size_t window,
                  std::function<void(int rank, std::size_t bytes)> make_room);

    /// Adds a rank behind the others.
    void add();
    /// What goes before this rank's lines.
    void set_format(int rank, line_format const& how);
    /// Of its lines to come: their tag, and whether they show.
    void set_tag(int rank, line_format const& how);
    void take(int rank, wire::output_piece const& piece);
    /// Nothing more comes of this rank: its unfinished lines are written.
    void finish(int rank);
    /// To be called when the writer may have room again.
    void resume();

    /// How much a shim of a world of so many ranks, and of so many on one connection, may send ahead, in bytes: together they must not
    /// fill the launcher's memory, nor what the kernel keeps of a connection.
    static std::size_t window(std::size_t ranks, std::size_t on_one_connection = 1);

  private:
    struct one_stream {
        int target;
        bool terminal;
        line_splitter lines;
    };
    struct one_rank {
        one_stream out, err;
        std::size_t taken = 0;  ///< bytes that its shim does not know of
    };
    void make_room(int rank);
    void flush_partials();

    event_loop& loop_;
    output_writer& writer_;
    std::deque<one_rank> ranks_;  ///< none moves when one is added: the writer knows streams by their addresses
    std::function<void(int, std::size_t)> make_room_;
    std::size_t window_;
    std::vector<int> held_;  ///< ranks to notify once there is room
    bool flush_pending_ = false;
};

}  // namespace muster
