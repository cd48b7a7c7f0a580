// stdout and stderr of one rank: read, kept in files if asked, passed on in whole lines.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.hpp"
#include "launch/ranks/output_writer.hpp"
#include "launch/system/event_loop.hpp"
#include "pmix/identity.hpp"

namespace muster {

// Cuts a rank's output into whole lines.

/// What goes before each line.
struct line_format {
    std::string tag;         ///< as in "[node1:3] "
    bool timestamp = false;  ///< and before that the time, as in "2026-03-01T12:00:00.123 "
    bool raw = false;        ///< pass everything on at once: one rank cannot tear its own lines
    bool hidden = false;     ///< pass nothing on; the lines are kept for the report of a failure, and in files
    bool tagged() const noexcept { return timestamp || !tag.empty(); }
};

/// A stream of bytes in, whole lines out, each with its tag. Bytes are never changed, dropped or reordered.
class line_splitter {
  public:
    explicit line_splitter(line_format how = {}) : format_(std::move(how)) {}
    /// One without `tail`.
    static line_splitter without_tail(line_format how) {
        line_splitter lines(std::move(how));
        lines.keeps_tail_ = false;
        return lines;
    }

    /// Takes what was read; returns the complete lines so far, tagged, or nothing. A line longer than `longest_line_bytes` is
    /// passed on in pieces.
    std::string push(std::string_view bytes);

    /// Of the lines to come: their tag, and whether they show.
    void set_tag(line_format const& how) { format_.tag = how.tag, format_.hidden = how.hidden; }

    /// The unfinished last line, ended by a newline if it is tagged.
    std::string finish();
    bool has_partial() const noexcept { return !partial_.empty(); }
    /// Whether the unfinished line may be one that shows before it ends: on a terminal any, elsewhere a progress bar.
    bool awaits_flush(bool terminal) const noexcept { return has_partial() && !format_.hidden && (terminal || has_return_); }
    /// The unfinished line if it is to show now, to be called every moment. A progress bar is text with carriage returns: one that begins with it
    /// shows at once. Another bar, and on a terminal any line (a prompt, a row of dots), shows if it was unfinished at the last call already.
    std::string flush(bool terminal);

    /// The last few complete or unfinished lines seen, at most `lines`, for the report of a failure.
    std::string tail(std::size_t lines) const;

    static constexpr std::size_t longest_line_bytes = 16u << 20;

  private:
    bool is_bar() const noexcept;
    void keep_partial(std::string_view bytes);
    std::string prefix() const;
    void remember(std::string_view bytes);
    line_format format_;
    std::string partial_;
    bool has_return_ = false;  ///< `partial_` has a carriage return
    bool waited_ = false;      ///< the unfinished line had begun when `flush` was last called
    std::string tail_;
    bool keeps_tail_ = true;
};

/// A file in --output-dir that keeps a stream, and how it is called in messages.
struct output_file {
    unique_fd fd;
    std::string name;  ///< "rank 3's output to logs/rank.03/stdout"
};

/// What one read of a stream gave: bytes, nothing for now, or its end.
enum class stream_read { bytes, nothing, end };

/// One stream of one rank. Reads never block.
class rank_stream {
  public:
    /// `target` is 1 or 2, muster's own descriptor; `file` may be none. Throws errc::system if no pipe can be made.
    rank_stream(int target, line_format how, output_file file);

    int read_fd() const noexcept { return read_.get(); }
    int child_fd() const noexcept { return write_.get(); }
    void close_child_end() noexcept { write_.reset(); }
    /// To be called once nothing watches `read_fd` any more.
    void close() noexcept { read_.reset(); }
    bool open() const noexcept { return read_ && !ended_; }

    /// Reads what is there, once, and passes it on. At the stream's end the last line is passed on too, and it is to be closed.
    stream_read read_some(output_sink& sink);
    /// Reads until there is nothing more for now or the stream ends.
    void read_all(output_sink& sink);
    /// Reads what fits in a pipe or two and no more: a rank may write faster than we read.
    void read_for_now(output_sink& sink);
    /// Passes on an unfinished line at the end.
    void flush_partial(output_sink& sink) { sink.write(target_, lines_.finish(), this); }
    /// Passes on an unfinished line that is to be shown (line_splitter::flush). False if there is one that waits for the next call.
    bool flush_some(output_sink& sink);
    /// Whether `flush_some` has anything to wait for.
    bool awaits_flush() const noexcept { return lines_.awaits_flush(terminal_); }
    int target() const noexcept { return target_; }
    /// What goes before its lines from now on, and whether they show.
    void set_tag(line_format const& how) { lines_.set_tag(how); }
    /// What is wrong with the file that keeps it, once it could not be written (a full disk); the rest is passed on only.
    std::string const& file_fault() const noexcept { return file_fault_; }
    /// The last lines that were read, for the report of a failure.
    std::string last_lines() const { return lines_.tail(lines_reported); }

    static constexpr std::size_t lines_reported = 8;

  private:
    int target_;
    bool terminal_;
    bool ended_ = false;  ///< nothing comes any more
    line_splitter lines_;
    unique_fd read_;
    unique_fd write_;
    output_file file_;
    std::string file_fault_;
};

/// What goes before each line of a rank: "[node1:3] " and the time, as asked; in a run that may start again "[node1:3 g1] ", with its `generation`, else
/// below 0. A world of one needs no whole lines. `spare`: the number of a process that is no rank yet ("[node1:spare 0 g1] "), else below 0.
line_format output_format(bool tag, bool timestamp, identity const& who, int generation = -1, int spare = -1);

/// The files of a rank in --output-dir; none where that is not given.
struct output_files {
    output_file out, err;
};

/// Makes OUTPUT_DIR/rank.07 with the files stdout and stderr, emptied. All ranks' folders have names of the same width, so that
/// they sort. That of a spare is OUTPUT_DIR/spare.00. Throws errc::io and errc::system, also where the folder or a file is another user's.
output_files make_output_files(std::string const& output_dir, identity const& who, int spare = -1);

/// The number of a spare, whose rank lies behind those of the world; of any other process -1.
inline int spare_of(identity const& who) noexcept {
    return who.rank < who.world_size ? -1 : who.rank - who.world_size;
}

/// Removes the folders rank.NN of ranks that a run of `world_size` ranks does not have from the --output-dir of a former, larger
/// run, and those of all spares, as far as they hold only files that muster writes there. Returns how many ranks.
int clear_former_ranks(std::string const& output_dir, int world_size);

// Passes on what ranks print, from an event loop.

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
