// The screen of `muster watch`: prints lines, and on a terminal keeps one line of status below them.
#pragma once

#include <string>

namespace muster {

class watch_screen {
  public:
    watch_screen();

    /// A line of a rank (-1: of muster or the scheduler) on standard output; `job` is put before it unless it is empty. A line with
    /// "muster-metric:" is kept for the status as well.
    void print_line(std::string const& job, int rank, std::string const& line);
    /// A line of what has changed, on standard error.
    void print_state(std::string const& line);
    /// Only on a terminal: replaces the line of status.
    void show_status(std::string const& states);
    void flush();
    /// Removes the status.
    void end();

  private:
    void erase();
    void draw();

    bool terminal_;
    bool drawn_ = false;
    std::string states_;
    std::string metric_;
};

}  // namespace muster
