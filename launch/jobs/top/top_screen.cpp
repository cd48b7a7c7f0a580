#include "launch/jobs/top/top_screen.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <memory>
#include <utility>

#include "base/text_table.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"
#include "base/wall_clock.hpp"
#include "launch/jobs/top/cells.hpp"
#include "launch/jobs/top/top_page.hpp"
#include "launch/samples/side_work.hpp"
#include "launch/system/signals.hpp"

namespace muster {

namespace {

constexpr duration draw_each{1};  ///< ages grow; samples of other machines come without an event
constexpr std::string_view help_line = "q quit  h by host  n next host  arrows, pages: scroll  ? end";

/// Terminals that cannot take all of it, or have gone, are no error: poll() tells the end.
void put(std::string_view text) noexcept {
    while (!text.empty()) {
        auto const count = ::write(STDOUT_FILENO, text.data(), text.size());
        if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
        if (count < 0 && errno == EAGAIN) {
            pollfd room{STDOUT_FILENO, POLLOUT, 0};
            if (::poll(&room, 1, -1) < 0 && errno != EINTR) return;
        } else if (count < 0 && errno != EINTR) {
            return;
        }
    }
}

std::vector<int> screen_signals() {
    std::vector<int> numbers;
    for (int const number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH})
        if (!is_ignored(number)) numbers.push_back(number);
    return numbers;
}

/// Stops this process as Ctrl-Z does by default: not where nobody could continue it, as where no shell shares its session.
void stop_this_process() {
    struct sigaction before {};
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGTSTP);
    ::sigaction(SIGTSTP, &usual, &before);
    ::raise(SIGTSTP);
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);  // here it stops
    ::pthread_sigmask(SIG_BLOCK, &only, nullptr);
    ::sigaction(SIGTSTP, &before, nullptr);
}

}  // namespace

std::vector<top_key> take_keys(std::string& typed) {
    static constexpr std::pair<std::string_view, top_key> keys[]{
        {"q", top_key::quit},          {"h", top_key::hosts},           {"n", top_key::next_host}, {"?", top_key::help},
        {"\x1b[A", top_key::up},       {"\x1bOA", top_key::up},         {"\x1b[B", top_key::down}, {"\x1bOB", top_key::down},
        {"\x1b[5~", top_key::page_up}, {"\x1b[6~", top_key::page_down}, {" ", top_key::page_down},
    };
    std::vector<top_key> found;
    while (!typed.empty()) {
        auto const key = std::ranges::find_if(keys, [&](auto const& one) { return typed.starts_with(one.first); });
        bool const is_begun = std::ranges::any_of(keys, [&](auto const& one) { return one.first.starts_with(typed); });
        if (key == std::end(keys) && is_begun) break;
        if (key != std::end(keys)) found.push_back(key->second);
        typed.erase(0, key == std::end(keys) ? 1 : key->first.size());
    }
    return found;
}

namespace {

/// Holds the state of the terminal while it is drawn on: the alternate screen, no cursor, no echo, keys without Return. Ends it when it is
/// destroyed.
class drawn_terminal {
  public:
    drawn_terminal() { begin(); }
    ~drawn_terminal() { end(); }
    drawn_terminal(drawn_terminal const&) = delete;
    drawn_terminal& operator=(drawn_terminal const&) = delete;

    void begin() noexcept {
        if (!is_begun_) ::tcgetattr(STDIN_FILENO, &before_);
        is_begun_ = true;
        auto raw = before_;
        raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl-C and Ctrl-Z stay signals
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        put("\x1b[?1049h\x1b[?25l\x1b[?7l");  // the alternate screen, no cursor, no automatic wrap
    }
    void end() noexcept {
        if (!std::exchange(is_begun_, false)) return;
        put("\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l");
        ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }

  private:
    bool is_begun_ = false;
    termios before_{};
};

/// A look at the run has a copy of it for itself: a file system that does not answer must hold up neither keys nor signals.
class top_screen {
  public:
    top_screen(sampled_run run, environment const& variables)
        : run_(std::move(run)),
          has_colour_(variables.get_or("NO_COLOR", "").empty()),
          signals_(take_signals(screen_signals(), "muster top")),
          looks_(loop_, "for muster top", 0, [this] { take_look(); }) {}

    int show() {
        loop_.watch_readable(STDIN_FILENO, [this] { take_typed(); });
        loop_.watch_readable(signals_.get(), [this] { take_signal(); });
        draw();
        loop_.after(draw_each, [this] { look(); });
        loop_.run();
        terminal_.end();
        if (code_ == 0 && !run_.end().empty()) put(run_.end() + "\n");
        if (looks_.is_busy()) ::_exit(code_);
        return code_;
    }

  private:
    struct other_look {
        sampled_run run;
        std::exception_ptr fault = {};
    };

    void look() {
        loop_.after(draw_each, [this] { look(); });
        if (looks_.is_busy()) return draw();
        next_ = std::make_shared<other_look>(other_look{run_});
        looks_.begin([next = next_] {
            try {
                next->run.look();
            } catch (...) {
                next->fault = std::current_exception();
            }
        });
    }
    void take_look() {
        if (next_->fault) std::rethrow_exception(next_->fault);
        run_ = std::move(next_->run);
        if (!run_.end().empty()) return loop_.stop();
        draw();
    }
    void take_signal() {
        signalfd_siginfo got{};
        if (::read(signals_.get(), &got, sizeof got) != sizeof got) return;
        auto const number = static_cast<int>(got.ssi_signo);
        if (number == SIGTSTP) {
            terminal_.end();
            stop_this_process();
        }
        if (number == SIGTSTP || number == SIGCONT) terminal_.begin();
        if (number == SIGTSTP || number == SIGCONT || number == SIGWINCH) return draw();
        code_ = 128 + number;
        loop_.stop();
    }
    void take_typed() {
        std::array<char, 256> bytes{};
        auto const count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
        if (count <= 0) return loop_.stop();  // the terminal is gone
        typed_.append(bytes.data(), static_cast<std::size_t>(count));
        for (auto const key : take_keys(typed_)) obey(key);
        draw();
    }
    void obey(top_key key);
    void choose_next_host();
    void draw();

    sampled_run run_;
    bool has_colour_;
    top_view view_ = {};
    bool knows_size_ = false;  ///< by_host was chosen by the number of ranks
    bool shows_help_ = false;
    std::size_t first_ = 0;   ///< the row at the top
    std::size_t window_ = 1;  ///< rows on the screen
    std::string typed_;
    int code_ = 0;
    unique_fd signals_;
    event_loop loop_;
    std::shared_ptr<other_look> next_;
    side_work looks_;
    drawn_terminal terminal_;
};

void top_screen::obey(top_key key) {
    auto const back = [&](std::size_t by) { first_ -= std::min(first_, by); };
    switch (key) {
        case top_key::quit: loop_.stop(); break;
        case top_key::hosts:
            view_.by_host = !view_.by_host || !view_.host.empty();
            view_.host.clear();
            first_ = 0;
            break;
        case top_key::next_host: choose_next_host(); break;
        case top_key::help: shows_help_ = !shows_help_; break;
        case top_key::up: back(1); break;
        case top_key::down: ++first_; break;
        case top_key::page_up: back(window_); break;
        case top_key::page_down: first_ += window_; break;
    }
}

/// Shows all hosts again after the last.
void top_screen::choose_next_host() {
    if (!run_.samples()) return;
    auto const& nodes = run_.samples()->nodes;
    auto next = std::ranges::find(nodes, view_.host, &node_sample::host);
    next = next == nodes.end() ? nodes.begin() : next + 1;
    view_.host = next == nodes.end() ? "" : next->host;
    first_ = 0;
}

void top_screen::draw() {
    auto const [columns, height] = terminal_size(STDOUT_FILENO);
    view_.width = columns - 1;  // what is written into the last column may wrap
    view_.now = clock_now();
    view_.notes = height / 3;
    top_page page;
    if (run_.samples()) {
        if (!std::exchange(knows_size_, true)) view_.by_host = has_many_ranks(*run_.samples());
        page = make_top_page(*run_.samples(), view_);
    } else {
        page.header = {fit(fmt::format("{}: no samples yet", printable(run_.folder())), view_.width)};
    }
    auto const below = page.notes.size() + (page.notes.empty() ? 0 : 1) + 1;
    auto const above = page.header.size() + 2;
    window_ = height > above + below ? height - above - below : 1;
    auto const rows = page.rows.size();
    first_ = std::min(first_, rows - std::min(rows, window_));
    auto const last = std::min(rows, first_ + window_);

    std::vector<std::string> lines(page.header);
    auto const in_colour = [&](std::string const& text, bool is_odd) {
        return is_odd && has_colour_ ? fmt::format("\x1b[1;33m{}\x1b[0m", text) : text;
    };
    lines.emplace_back();
    lines.push_back(fmt::format("\x1b[7m{}\x1b[0m", fit(page.titles, view_.width)));
    for (auto i = first_; i < last; ++i) lines.push_back(in_colour(page.rows[i].text, page.rows[i].is_odd));
    if (!page.notes.empty()) lines.emplace_back();
    for (auto const& note : page.notes) lines.push_back(in_colour(note, true));
    if (lines.size() + 1 > height) lines.resize(height - 1);
    auto const status = fmt::format("{} {}-{} of {}; ? shows the keys", view_.by_host && view_.host.empty() ? "hosts" : "ranks",
                                    std::min(rows, first_ + 1), last, rows);
    std::string text = "\x1b[H";
    for (auto const& line : lines) text += "\x1b[2K" + line + "\r\n";
    put(text + "\x1b[J\x1b[" + std::to_string(height) + ";1H" +
        fit(shows_help_ ? help_line : std::string_view(status), view_.width));
}

}  // namespace

bool can_draw_top(environment const& variables) {
    auto const kind = variables.get_or("TERM", "");
    return !kind.empty() && kind != "dumb" && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
}

int draw_top(sampled_run run, environment const& variables) {
    return top_screen(std::move(run), variables).show();
}

}  // namespace muster
