// Passes on what ranks print, from an event loop.
#pragma once

#include <deque>
#include <functional>

#include "launch/ranks/output_writer.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// Reads ranks' streams and gives what it reads to an output_sink. While that is congested, it reads no more from the ranks, which then
/// wait. Unfinished progress bars, and on a terminal other unfinished lines, show after a moment. Used from the loop's thread.
class output_pump {
  public:
    /// `loop` and `sink` must outlive it.
    output_pump(event_loop& loop, output_sink& sink) : loop_(loop), sink_(sink) {}
    ~output_pump() { unwatch_all(); }
    output_pump(output_pump const&) = delete;
    output_pump& operator=(output_pump const&) = delete;

    /// Reads this stream from now on; it must outlive the pump. `on_output` is called before each read.
    void add(rank_stream& stream, std::function<void()> on_output);
    /// To be called when the sink may have room again.
    void resume();
    /// Closes the streams with this target, whose reader has gone: ranks that write on get SIGPIPE.
    void close_streams_to(int target);

    /// Reads what the stream holds now, a pipe or two at most, so that its last lines are known.
    void read_for_now(rank_stream& stream);
    /// Reads all streams to their end and stops watching them.
    void finish();

  private:
    struct entry {
        rank_stream* stream;
        std::function<void()> on_output;
    };
    void watch(entry& one);
    void on_readable(entry& one);
    void flush_partials();
    void unwatch_ended(rank_stream& stream);
    void unwatch_all();

    event_loop& loop_;
    output_sink& sink_;
    std::deque<entry> entries_;  ///< never moved, since the loop refers to them
    bool paused_ = false;
    bool flush_pending_ = false;
};

/// How often unfinished lines are looked at that are to be shown.
constexpr duration partial_patience{0.15};

}  // namespace muster
