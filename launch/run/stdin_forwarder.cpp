#include "launch/run/stdin_forwarder.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/error.hpp"

namespace muster {

namespace {

constexpr duration background_poll{0.5};

}  // namespace

stdin_forwarder::stdin_forwarder(event_loop& loop) : loop_(loop) {
    if (::isatty(STDIN_FILENO) != 1) return;
    auto [read_end, write_end] = make_pipe();
    ::fcntl(write_end.get(), F_SETFL, O_NONBLOCK);
    child_ = std::move(read_end);
    pipe_ = std::move(write_end);
    loop_.watch_readable(STDIN_FILENO, [this] { read_terminal(); });
}

stdin_forwarder::~stdin_forwarder() {
    stop();
}

void stdin_forwarder::stop() noexcept {
    if (!pipe_) return;
    loop_.unwatch(STDIN_FILENO);
    loop_.unwatch(pipe_.get());
    pipe_.reset();
}

void stdin_forwarder::read_terminal() {
    if (::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) {  // in the background, where reading would stop us
        loop_.unwatch(STDIN_FILENO);
        loop_.after(background_poll, [this] {
            if (pipe_) loop_.watch_readable(STDIN_FILENO, [this] { read_terminal(); });
        });
        return;
    }
    std::array<char, 4096> buffer;
    auto const n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0)
        end_seen_ = true;
    else
        pending_.append(buffer.data(), static_cast<std::size_t>(n));
    loop_.unwatch(STDIN_FILENO);  // until rank 0 has taken this
    loop_.watch_writable(pipe_.get(), [this] { write_pending(); });
}

void stdin_forwarder::write_pending() {
    if (!pending_.empty()) {
        auto const n = ::write(pipe_.get(), pending_.data(), pending_.size());
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n < 0) return stop();  // rank 0 has closed it
        pending_.erase(0, static_cast<std::size_t>(n));
        if (!pending_.empty()) return;
    }
    if (end_seen_) return stop();
    loop_.unwatch(pipe_.get());
    loop_.watch_readable(STDIN_FILENO, [this] { read_terminal(); });
}

void close_input() {
    unique_fd const nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!nothing || ::dup2(nothing.get(), STDIN_FILENO) < 0) throw_system("open", "/dev/null");
}

bool input_is_shared() {
    struct stat found {};
    if (::fstat(STDIN_FILENO, &found) != 0) return false;
    if (S_ISREG(found.st_mode)) {
        auto const at = ::lseek(STDIN_FILENO, 0, SEEK_CUR);
        return at > 0 && at < found.st_size;
    }
    int waiting = 0;
    return S_ISFIFO(found.st_mode) && ::ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting > 0;
}

}  // namespace muster
