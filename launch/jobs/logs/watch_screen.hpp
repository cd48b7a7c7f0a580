// The screen of `muster watch`: prints lines, and on a terminal keeps some lines of status below them.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// `line` in pieces of at most `width` bytes where it can be cut behind a ';'; the later ones are indented. Pure.
std::vector<std::string> fold_line(std::string_view line, std::size_t width);

class watch_screen {
  public:
    watch_screen();

    /// A line of `who` ("3", "spare 0"; empty: muster or the scheduler) on standard output; `job` is put before it unless it is empty. A line with
    /// "muster-metric:" is kept for the status as well.
    void print_line(std::string const& job, std::string const& who, std::string const& line);
    /// A line of what has changed, on standard error.
    void print_state(std::string const& line);
    /// Only on a terminal: replaces the line of status.
    void show_status(std::string const& states);
    /// Lines below the status, folded at "; "; `summary` instead where they would take more than a third of the terminal. Elsewhere they are
    /// printed as states, at most once a minute.
    void show_gpus(std::vector<std::string> const& lines, std::string const& summary);
    void flush();
    /// Removes the status.
    void end();

  private:
    void erase();
    void draw();

    bool terminal_;
    std::size_t drawn_ = 0;  ///< lines
    std::string states_;
    std::string metric_;
    std::vector<std::string> gpus_;
    std::optional<std::chrono::steady_clock::time_point> gpus_printed_;
};

}  // namespace muster
