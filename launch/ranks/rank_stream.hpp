// Reads stdout and stderr of one rank, writes them to files on request, and passes them on in whole lines.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.hpp"
#include "launch/ranks/output_writer.hpp"
#include "launch/samples/metric_line.hpp"
#include "launch/system/event_loop.hpp"
#include "pmix/identity.hpp"

namespace muster {

// Cuts a rank's output into whole lines.

/// Says what precedes each line.
struct line_format {
    std::string tag;         ///< as in "[node1:3] "
    bool timestamp = false;  ///< before the tag, the time, as in "2026-03-01T12:00:00.123 "
    bool raw = false;        ///< pass everything on at once: one rank cannot tear its own lines
    bool hidden = false;     ///< show none of it
    bool tagged() const noexcept { return timestamp || !tag.empty(); }
};

/// Takes a stream of bytes and returns whole lines, each with its tag. Never changes, drops or reorders bytes.
class line_splitter {
  public:
    explicit line_splitter(line_format how = {}) : format_(std::move(how)) {}
    /// Makes one without `tail`.
    static line_splitter without_tail(line_format how) {
        line_splitter lines(std::move(how));
        lines.keeps_tail_ = false;
        return lines;
    }

    /// Takes bytes; returns the complete lines so far, tagged, or nothing. Passes on a line longer than `longest_line_bytes` in
    /// pieces.
    std::string push(std::string_view bytes);

    /// Sets the tag of future lines, and whether they are shown.
    void set_tag(line_format const& how) { format_.tag = how.tag, format_.hidden = how.hidden; }

    /// Returns where its lines go: `target`, or output_sink::unshown.
    int destination(int target) const noexcept { return format_.hidden ? output_sink::unshown : target; }

    /// Returns the unfinished last line, ended by a newline if it is tagged.
    std::string finish();
    bool has_partial() const noexcept { return !partial_.empty(); }
    /// Returns whether the unfinished line may be shown before it ends: on a terminal any, elsewhere a progress bar.
    bool awaits_flush(bool terminal) const noexcept { return has_partial() && (terminal || has_return_); }
    /// Returns the unfinished line if it should be shown now; call it every moment. A progress bar is text with carriage returns:
    /// one that begins with it is shown at once. Another bar, and on a terminal any line (a prompt, a row of dots), is shown if
    /// it was unfinished at the last call.
    std::string flush(bool terminal);

    /// Returns the last few complete or unfinished lines, at most `lines`, for the report of a failure.
    std::string tail(std::size_t lines) const;

    static constexpr std::size_t longest_line_bytes = 16u << 20;

  private:
    bool is_bar() const noexcept;
    void keep_partial(std::string_view bytes);
    std::string prefix() const;
    void remember(std::string_view bytes);
    line_format format_;
    std::string partial_;
    bool has_return_ = false;  ///< `partial_` contains a carriage return
    bool waited_ = false;      ///< the unfinished line had begun when `flush` was last called
    std::string tail_;
    bool keeps_tail_ = true;
};

/// A file in --output-dir that keeps a stream, and its name in messages.
struct output_file {
    unique_fd fd;
    std::string name;  ///< "rank 3's output to logs/rank.03/stdout"
};

/// The result of one read of a stream: bytes, nothing for now, or its end.
enum class stream_read { bytes, nothing, end };

/// One stream of one rank. Reads never block.
class rank_stream {
  public:
    /// `target` is 1 or 2, muster's own descriptor; `file` may be empty. Throws errc::system if it cannot make a pipe.
    rank_stream(int target, line_format how, output_file file);

    int read_fd() const noexcept { return read_.get(); }
    int child_fd() const noexcept { return write_.get(); }
    void close_child_end() noexcept { write_.reset(); }
    /// Call it when nothing watches `read_fd` any more.
    void close() noexcept { read_.reset(); }
    bool open() const noexcept { return read_ && !ended_; }

    /// Reads available bytes, once, and passes them on. At the stream's end it also passes on the last line; the caller then
    /// closes the stream.
    stream_read read_some(output_sink& sink);
    /// Reads until nothing more is available or the stream ends.
    void read_all(output_sink& sink);
    /// Reads as much as a pipe or two hold and no more: a rank may write faster than we read.
    void read_for_now(output_sink& sink);
    /// Passes on an unfinished line at the end.
    void flush_partial(output_sink& sink) { sink.write(lines_.destination(target_), lines_.finish(), this); }
    /// Passes on an unfinished line that should be shown (line_splitter::flush). Returns false if one waits for the next call.
    bool flush_some(output_sink& sink);
    /// Returns whether a line waits for `flush_some`.
    bool awaits_flush() const noexcept { return lines_.awaits_flush(terminal_); }
    int target() const noexcept { return target_; }
    /// Sets what precedes its future lines, and whether they are shown.
    void set_tag(line_format const& how) { lines_.set_tag(how); }
    /// Returns what is wrong with its file after a failed write (a full disk); the rest is only passed on.
    std::string const& file_fault() const noexcept { return file_fault_; }
    /// Returns the last lines that were read, for the report of a failure.
    std::string last_lines() const { return lines_.tail(lines_reported); }
    /// Returns its last metric, "loss 0.25"; empty: there was none.
    std::string const& last_metric_text() const noexcept { return metric_.text(); }

    static constexpr std::size_t lines_reported = 8;

  private:
    int target_;
    bool terminal_;
    bool ended_ = false;  ///< nothing more comes
    line_splitter lines_;
    last_metric metric_;
    unique_fd read_;
    unique_fd write_;
    output_file file_;
    std::string file_fault_;
};

/// The files of a rank in --output-dir; empty without that option.
struct output_files {
    output_file out, err;
};

/// Makes OUTPUT_DIR/rank.07 with the empty files stdout and stderr. All ranks' folders have names of the same width, so that they
/// sort. A spare's is OUTPUT_DIR/spare.00. Throws errc::io and errc::system, also if the folder or a file belongs to another
/// user.
output_files make_output_files(std::string const& output_dir, identity const& who, int spare = -1);

/// Returns the number of a spare, whose rank follows those of the world; -1 for any other process.
inline int spare_of(identity const& who) noexcept {
    return who.rank < who.world_size ? -1 : who.rank - who.world_size;
}

/// Removes the folders rank.NN of ranks that a run of `world_size` ranks does not have from the --output-dir of an earlier,
/// larger run, and those of all spares, if they contain only files that muster writes there. Returns the number of ranks.
int clear_former_ranks(std::string const& output_dir, int world_size);

// Passes on what ranks print, from an event loop.

/// Reads ranks' streams and passes the bytes to an output_sink. While that is congested, it reads no more from the ranks, which
/// then wait. Unfinished progress bars, and on a terminal other unfinished lines, appear after a moment. Used from the loop's
/// thread.
class output_pump {
  public:
    /// `loop` and `sink` must outlive it.
    output_pump(event_loop& loop, output_sink& sink) : loop_(loop), sink_(sink) {}
    ~output_pump() { unwatch_all(); }
    output_pump(output_pump const&) = delete;
    output_pump& operator=(output_pump const&) = delete;

    /// Reads this stream from now on; it must outlive the pump. Calls `on_output` before each read.
    void add(rank_stream& stream, std::function<void()> on_output);
    /// Call it when the sink may have room again.
    void resume();
    /// Closes the streams with this target, whose reader has gone: ranks that go on writing get SIGPIPE.
    void close_streams_to(int target);

    /// Reads what the stream contains now, at most a pipe or two, so that its last lines are known.
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
    std::deque<entry> entries_;  ///< a deque: entries never move, since the loop refers to them
    bool paused_ = false;
    bool flush_pending_ = false;
};

/// The interval of looks at unfinished lines that should be shown.
constexpr duration partial_patience{0.15};

}  // namespace muster
