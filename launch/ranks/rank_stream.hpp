// stdout and stderr of one rank: read, kept in files if asked, passed on in whole lines.
#pragma once

#include <cstddef>
#include <string>

#include "base/unique_fd.hpp"
#include "launch/ranks/line_splitter.hpp"
#include "launch/ranks/output_writer.hpp"
#include "pmix/identity.hpp"

namespace muster {

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
    /// What goes before its lines from now on.
    void set_tag(std::string tag) { lines_.set_tag(std::move(tag)); }
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

}  // namespace muster
