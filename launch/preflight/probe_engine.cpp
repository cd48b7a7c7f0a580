#include "launch/preflight/probe_engine.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/system/host_name.hpp"
#include "launch/wire/node_report.hpp"

namespace muster {

namespace {

constexpr duration reap_again{0.02};
constexpr std::size_t most_said_bytes = 64u << 10;

}  // namespace

probe_engine::probe_engine(event_loop& loop, engine_command const& command, more_open_files const& files,
                           std::vector<std::size_t> slots, exit_callback on_exit)
    : loop_(loop), slots_(std::move(slots)), on_exit_(std::move(on_exit)) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_system("pipe2", "for the engine's output");
    output_.reset(ends[0]);
    unique_fd const writer(ends[1]);
    ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
    pid_ = start_engine(command, files, {-1, writer.get(), writer.get()});
    loop_.watch_readable(output_.get(), [this] { on_output(); });
}

probe_engine::~probe_engine() {
    loop_.unwatch(output_.get());
}

bool probe_engine::brings(std::size_t slot) const noexcept {
    return std::find(slots_.begin(), slots_.end(), slot) != slots_.end();
}

void probe_engine::on_output() {
    std::array<char, 4096> bytes;
    ssize_t const count = ::read(output_.get(), bytes.data(), bytes.size());
    if (count > 0) {
        said_.append(bytes.data(), static_cast<std::size_t>(count));
        if (said_.size() > most_said_bytes) said_.erase(0, said_.size() - most_said_bytes);
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        loop_.unwatch(output_.get());
        reap();
    }
}

/// Its output has ended, so it is about to.
void probe_engine::reap() {
    if (::waitpid(pid_, &status_, WNOHANG) == 0) {
        loop_.after(reap_again, [this] { reap(); });
        return;
    }
    ended_ = true;
    on_exit_(*this);
}

/// What it said of `node`: paragraphs are divided by empty lines and by rules.
std::string probe_engine::quote(std::string const& node) const {
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

void probe_engine::kill(int signal_number) const {
    if (ended_) return;
    ::kill(-pid_, signal_number);
    ::kill(-pid_, SIGCONT);
}

}  // namespace muster
