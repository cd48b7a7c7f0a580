// Cuts a rank's output into whole lines.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace muster {

/// What goes before each line.
struct line_format {
    std::string tag;         ///< as in "[node1:3] "
    bool timestamp = false;  ///< and before that the time, as in "2026-03-01T12:00:00.123 "
    bool raw = false;        ///< pass everything on at once: one rank cannot tear its own lines
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

    /// Of the lines to come.
    void set_tag(std::string tag) { format_.tag = std::move(tag); }

    /// The unfinished last line, ended by a newline if it is tagged.
    std::string finish();
    bool has_partial() const noexcept { return !partial_.empty(); }
    /// Whether the unfinished line may be one that shows before it ends: on a terminal any, elsewhere a progress bar.
    bool awaits_flush(bool terminal) const noexcept { return has_partial() && (terminal || has_return_); }
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

}  // namespace muster
