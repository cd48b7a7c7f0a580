// The screen of `muster top`: draws the page of a run on a terminal, again and again, and obeys keys.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/jobs/top/sampled_run.hpp"
#include "launch/jobs/top/top_page.hpp"

namespace muster {

enum class top_key { quit, hosts, next_host, help, up, down, page_up, page_down };

/// Takes whole keys from the front of what a terminal has sent, and leaves the start of an unfinished one. Drops what is no key. Pure.
std::vector<top_key> take_keys(std::string& typed);

/// Holds the state of the terminal while it is drawn on: the alternate screen, no cursor, no echo, keys without Return. Ends it when it is
/// destroyed.
class drawn_terminal {
  public:
    drawn_terminal() { begin(); }
    ~drawn_terminal() { end(); }
    drawn_terminal(drawn_terminal const&) = delete;
    drawn_terminal& operator=(drawn_terminal const&) = delete;
    void begin() noexcept;
    void end() noexcept;

  private:
    bool is_begun_ = false;
    termios before_{};
};

class top_screen {
  public:
    top_screen(sampled_run& run, environment const& variables);
    /// Returns whether standard input and output are a terminal that can be drawn on.
    static bool is_possible(environment const& variables);
    /// Shows the run, which has been looked at, until it ends or the user does. Returns the exit code: 0, or 128+n after signal n, by which the process ends at
    /// once while a file system does not answer. Throws as sampled_run::look().
    int show();

  private:
    void obey(top_key key);
    void choose_next_host();
    void draw();

    sampled_run& run_;
    bool has_colour_;
    top_view view_;
    top_page page_;
    bool knows_size_ = false;  ///< by_host was chosen by the number of ranks
    bool shows_help_ = false;
    bool is_over_ = false;
    std::size_t first_ = 0;   ///< the row at the top
    std::size_t window_ = 1;  ///< rows on the screen
};

}  // namespace muster
