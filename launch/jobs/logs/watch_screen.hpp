// The screen of `muster watch`: prints lines, and on a terminal keeps some lines of status below them.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Returns `line` in pieces of at most `width` bytes, if it can be cut after a ';'; indents the later ones. Pure.
std::vector<std::string> fold_line(std::string_view line, std::size_t width);

class watch_screen {
  public:
    watch_screen();

    /// Prints a line of `who` ("3", "spare 0"; empty: muster or the scheduler) on standard output, after `job` unless that is
    /// empty. Keeps a line with "muster-metric:" for the status as well.
    void print_line(std::string const& job, std::string const& who, std::string const& line);
    /// Prints a line about a change, on standard error.
    void print_state(std::string const& line);
    /// Replaces the status line; does nothing without a terminal.
    void show_status(std::string const& states);
    /// Shows lines below the status, folded at "; ", or `summary` if they would take more than a third of the terminal. Without a
    /// terminal it prints them as states, at most once a minute.
    void show_gpus(std::vector<std::string> const& lines, std::string const& summary);
    void flush();
    /// Removes the status.
    void end();

  private:
    void erase();
    void draw();

    bool terminal_;
    std::size_t drawn_ = 0;  ///< in lines
    std::string states_;
    std::string metric_;
    std::vector<std::string> gpus_;
    std::optional<std::chrono::steady_clock::time_point> gpus_printed_;
};

}  // namespace muster
