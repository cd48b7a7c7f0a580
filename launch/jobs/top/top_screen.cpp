#include "launch/jobs/top/top_screen.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "base/throw_error.hpp"
#include "base/unique_fd.hpp"
#include "launch/jobs/top/cells.hpp"
#include "launch/system/signals.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

constexpr auto draw_each = std::chrono::seconds(1);  ///< ages grow; samples of other machines come without an event
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

winsize terminal_size() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
    if (size.ws_col < 2) size.ws_col = 80;
    if (size.ws_row < 2) size.ws_row = 24;
    return size;
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

void drawn_terminal::begin() noexcept {
    if (!is_begun_) ::tcgetattr(STDIN_FILENO, &before_);
    is_begun_ = true;
    auto raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl-C and Ctrl-Z stay signals
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    put("\x1b[?1049h\x1b[?25l\x1b[?7l");  // the alternate screen, no cursor, no automatic wrap
}

void drawn_terminal::end() noexcept {
    if (!std::exchange(is_begun_, false)) return;
    put("\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l");
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

top_screen::top_screen(sampled_run& run, environment const& variables)
    : run_(run), has_colour_(variables.get_or("NO_COLOR", "").empty()) {}

bool top_screen::is_possible(environment const& variables) {
    auto const kind = variables.get_or("TERM", "");
    return !kind.empty() && kind != "dumb" && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
}

int top_screen::show() {
    auto const signals = take_signals(screen_signals(), "muster top");
    unique_fd const looked(::eventfd(0, EFD_CLOEXEC));
    if (!looked) throw_system("eventfd", "for muster top");
    drawn_terminal terminal;
    std::string typed;
    std::thread look;  // a file system that does not answer must not hold up signals
    std::exception_ptr fault;
    auto next = clock::now() + draw_each;
    while (!is_over_) {
        if (!look.joinable() && clock::now() >= next) {
            next = clock::now() + draw_each;
            look = std::thread([&] {
                try {
                    run_.look();
                } catch (...) {
                    fault = std::current_exception();
                }
                ::eventfd_write(looked.get(), 1);
            });
        }
        bool const is_looking = look.joinable();  // the thread has run_ for itself
        if (!is_looking) draw();
        auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(next - clock::now()).count() + 1;
        std::array<pollfd, 3> ready{
            {{is_looking ? -1 : STDIN_FILENO, POLLIN, 0}, {signals.get(), POLLIN, 0}, {looked.get(), POLLIN, 0}}};
        if (::poll(ready.data(), ready.size(), is_looking ? -1 : static_cast<int>(std::max<long>(left, 0))) <= 0) continue;
        if (ready[1].revents != 0) {
            signalfd_siginfo got{};
            if (::read(signals.get(), &got, sizeof got) != sizeof got) continue;
            auto const number = static_cast<int>(got.ssi_signo);
            if (number == SIGTSTP) {
                terminal.end();
                stop_this_process();
            }
            if (number == SIGTSTP || number == SIGCONT) terminal.begin();
            if (number == SIGTSTP || number == SIGCONT || number == SIGWINCH) continue;
            if (!is_looking) return 128 + number;
            terminal.end();
            ::_exit(128 + number);
        }
        if (ready[2].revents != 0) {
            eventfd_t count = 0;
            ::eventfd_read(looked.get(), &count);
            look.join();
            if (fault) std::rethrow_exception(fault);
            if (!run_.end().empty()) break;
            continue;
        }
        std::array<char, 256> bytes{};
        auto const count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
        if (count <= 0) break;  // the terminal is gone
        typed.append(bytes.data(), static_cast<std::size_t>(count));
        for (auto const key : take_keys(typed)) obey(key);
    }
    terminal.end();
    if (!run_.end().empty()) put(run_.end() + "\n");
    return 0;
}

void top_screen::obey(top_key key) {
    auto const back = [&](std::size_t by) { first_ -= std::min(first_, by); };
    switch (key) {
        case top_key::quit: is_over_ = true; break;
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
    auto const size = terminal_size();
    std::size_t const height = size.ws_row;
    view_.width = size.ws_col - 1u;  // what is written into the last column may wrap
    view_.now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    view_.notes = height / 3;
    page_ = {};
    if (run_.samples()) {
        if (!std::exchange(knows_size_, true)) view_.by_host = has_many_ranks(*run_.samples());
        page_ = make_top_page(*run_.samples(), view_);
    } else {
        page_.header = {fit(fmt::format("{}: no samples yet", printable(run_.folder())), view_.width)};
    }
    auto const below = page_.notes.size() + (page_.notes.empty() ? 0 : 1) + 1;
    auto const above = page_.header.size() + 2;
    window_ = height > above + below ? height - above - below : 1;
    auto const rows = page_.rows.size();
    first_ = std::min(first_, rows - std::min(rows, window_));
    auto const last = std::min(rows, first_ + window_);

    std::vector<std::string> lines(page_.header);
    auto const in_colour = [&](std::string const& text, bool is_odd) {
        return is_odd && has_colour_ ? fmt::format("\x1b[1;33m{}\x1b[0m", text) : text;
    };
    lines.emplace_back();
    lines.push_back(fmt::format("\x1b[7m{}\x1b[0m", fit(page_.titles, view_.width)));
    for (auto i = first_; i < last; ++i) lines.push_back(in_colour(page_.rows[i].text, page_.rows[i].is_odd));
    if (!page_.notes.empty()) lines.emplace_back();
    for (auto const& note : page_.notes) lines.push_back(in_colour(note, true));
    if (lines.size() + 1 > height) lines.resize(height - 1);
    auto const status = fmt::format("{} {}-{} of {}; ? shows the keys", view_.by_host && view_.host.empty() ? "hosts" : "ranks",
                                    std::min(rows, first_ + 1), last, rows);
    std::string text = "\x1b[H";
    for (auto const& line : lines) text += "\x1b[2K" + line + "\r\n";
    put(text + "\x1b[J\x1b[" + std::to_string(height) + ";1H" +
        fit(shows_help_ ? help_line : std::string_view(status), view_.width));
}

}  // namespace muster
