#include "launch/engine/running_engine.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "base/letters.hpp"
#include "base/text.hpp"
#include "launch/remote/unreached_host.hpp"

namespace muster {

namespace {

constexpr duration reap_again{0.02};
constexpr std::size_t most_said_bytes = 64u << 10;

}  // namespace

running_engine::running_engine(event_loop& loop, engine_command const& command, more_open_files const& files,
                               std::vector<std::size_t> slots, exit_callback on_exit, unreached_callback on_unreached)
    : loop_(loop), slots_(std::move(slots)), on_exit_(std::move(on_exit)), on_unreached_(std::move(on_unreached)) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_system("pipe2", "for the engine's output");
    output_.reset(ends[0]);
    unique_fd const writer(ends[1]);
    ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
    pid_ = start_engine(command, files, {-1, writer.get(), writer.get()});
    loop_.watch_readable(output_.get(), [this] { on_output(); });
}

running_engine::~running_engine() {
    loop_.unwatch(output_.get());
}

bool running_engine::brings(std::size_t slot) const noexcept {
    return std::ranges::find(slots_, slot) != slots_.end();
}

void running_engine::on_output() {
    std::array<char, 4096> bytes;
    ssize_t const count = ::read(output_.get(), bytes.data(), bytes.size());
    if (count > 0) {
        said_.append(bytes.data(), static_cast<std::size_t>(count));
        take_unreached();
        if (said_.size() <= most_said_bytes) return;
        auto const surplus = said_.size() - most_said_bytes;
        said_.erase(0, surplus);
        read_ -= std::min(read_, surplus);
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        loop_.unwatch(output_.get());
        reap();
    }
}

/// Removes, from the output, what the starter of the engine remote said about single hosts.
void running_engine::take_unreached() {
    std::vector<unreached_host> all;
    for (std::size_t end; (end = said_.find('\n', read_)) != std::string::npos;) {
        auto one = parse_unreached_host(std::string_view(said_).substr(read_, end - read_));
        if (one && one->number < slots_.size()) {
            said_.erase(read_, end + 1 - read_);
            all.push_back(std::move(*one));
        } else {
            read_ = end + 1;
        }
    }
    for (auto const& one : all) on_unreached_(*this, slots_[one.number], one.why);
}

/// Reaps the process, which is about to end, since its output has ended.
void running_engine::reap() {
    if (::waitpid(pid_, &status_, WNOHANG) == 0) {
        loop_.after(reap_again, [this] { reap(); });
        return;
    }
    ended_ = true;
    on_exit_(*this);
}

/// Quotes what it said about `node`: empty lines and rules divide paragraphs.
std::string running_engine::quote(std::string const& node) const {
    constexpr std::size_t most_lines = 8;
    auto const name = short_name(without_user(node));
    std::vector<std::string> about, last, now;
    auto const end_paragraph = [&] {
        if (now.size() > most_lines) now.erase(now.begin(), now.end() - most_lines);
        if (about.empty() && join(now, " ").find(name) != std::string::npos) about = now;
        if (!now.empty()) last = std::exchange(now, {});
    };
    for (auto const line : split(said_, '\n')) {
        auto const words = trim(line);
        if (words.find_first_not_of("-=") == std::string_view::npos)
            end_paragraph();
        else
            now.emplace_back(words);
    }
    end_paragraph();
    auto const& chosen = about.empty() ? last : about;
    return chosen.empty() ? "" : ": " + join(chosen, " ");
}

std::string running_engine::quote_lines(std::string const& node) const {
    constexpr std::size_t most_lines = 4;
    auto const name = short_name(without_user(node));
    auto const is_of_name = [](char c) { return is_alphanumeric(c) || c == '-' || c == '_'; };
    std::vector<std::string> about;
    for (auto const line : split(said_, '\n')) {
        auto const at = line.find(name);
        auto const behind = at + name.size();
        if (at == std::string_view::npos || (at > 0 && is_of_name(line[at - 1])) ||
            (behind < line.size() && is_of_name(line[behind])))
            continue;
        about.emplace_back(trim(line));
    }
    if (about.size() > most_lines) about.erase(about.begin(), about.end() - most_lines);
    return about.empty() ? "" : ": " + join(about, " ");
}

void running_engine::kill(int signal_number) const {
    if (ended_) return;
    ::kill(-pid_, signal_number);
    ::kill(-pid_, SIGCONT);
}

}  // namespace muster
