// Passes on what ranks print, from an event loop.
#pragma once

#include <deque>
#include <functional>

#include "launch/ranks/output_writer.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// Reads ranks' streams and writes them through an output_writer of its own. While the reader of that output does not read, it
/// reads no more from the ranks, which then wait. Used from the loop's thread.
class output_pump {
  public:
    /// Where this process' own output goes: to the user, or to an engine that passes it on. To the user, unfinished lines show on
    /// a terminal after a moment, and ranks whose reader has gone get SIGPIPE.
    enum class output_to { user, engine };

    /// `on_writer_event` (may be empty) is called when a write has failed or room has come. Throws errc::system.
    output_pump(event_loop& loop, output_to where, std::function<void()> on_writer_event = {});
    ~output_pump();
    output_pump(output_pump const&) = delete;
    output_pump& operator=(output_pump const&) = delete;

    /// Reads this stream from now on; it must outlive the pump. `on_output` is called before each read.
    void add(rank_stream& stream, std::function<void()> on_output);

    /// Reads what the stream holds now, a pipe or two at most, so that its last lines are known.
    void read_for_now(rank_stream& stream);
    /// Reads all streams to their end and stops watching them.
    void finish();

    output_writer& writer() noexcept { return writer_; }

    /// Writes out what waits, at most for some seconds: a reader that does not read must not hold a stopped run for ever.
    void drain_briefly();
    /// Writes out what waits, until `interrupted` (asked ten times a second) is true.
    void drain_until(std::function<bool()> const& interrupted);

  private:
    struct entry {
        rank_stream* stream;
        std::function<void()> on_output;
    };
    void watch(entry& one);
    void on_readable(entry& one);
    void on_writer_event();
    void flush_partials();
    void unwatch_ended(rank_stream& stream);
    void unwatch_all();

    event_loop& loop_;
    output_to where_;
    std::function<void()> on_event_;
    output_writer writer_;
    std::deque<entry> entries_;  ///< never moved, since the loop refers to them
    bool paused_ = false;
    bool flush_pending_ = false;
};

}  // namespace muster
