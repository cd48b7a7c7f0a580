#include "launch/system/event_loop.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.hpp"

namespace muster {

event_loop::event_loop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (!epoll_) throw_system("epoll_create1", "for the launcher's loop");
}

void event_loop::watch(int fd, std::uint32_t events, callback when_ready) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
        throw_system("epoll_ctl", fmt::format("for descriptor {}", fd));
    watched_[fd] = {std::make_shared<callback>(std::move(when_ready)), nullptr};
}

void event_loop::watch_readable(int fd, callback when_ready) {
    watch(fd, EPOLLIN, std::move(when_ready));
}

void event_loop::watch_writable(int fd, callback when_ready) {
    watch(fd, EPOLLOUT, std::move(when_ready));
}

void event_loop::watch_reader_gone(int fd, callback when_gone) {
    struct stat kind {};
    if (::fstat(fd, &kind) != 0 || !(S_ISFIFO(kind.st_mode) || S_ISSOCK(kind.st_mode))) return;
    watch(fd, 0, std::move(when_gone));  // epoll always reports errors and hang-ups
}

void event_loop::watch_room(int fd, callback when_ready) {
    auto& one = watched_.at(fd);
    one.room = std::make_shared<callback>(std::move(when_ready));
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT;
    event.data.fd = fd;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0)
        throw_system("epoll_ctl", fmt::format("for descriptor {}", fd));
}

void event_loop::unwatch_room(int fd) noexcept {
    auto const found = watched_.find(fd);
    if (found == watched_.end() || !found->second.room) return;
    found->second.room.reset();
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

/// Keeps callbacks alive, since they may unwatch themselves; skips one that an earlier callback has unwatched.
void event_loop::call(int fd, std::uint32_t events) {
    auto found = watched_.find(fd);
    if (found == watched_.end()) return;
    if (auto const room = found->second.room; room && (events & EPOLLOUT) != 0) {
        (*room)();
        events &= ~static_cast<std::uint32_t>(EPOLLOUT);
        found = watched_.find(fd);
        if (events == 0 || found == watched_.end()) return;
    }
    auto const ready = found->second.ready;
    (*ready)();
}

void event_loop::unwatch(int fd) noexcept {
    if (watched_.erase(fd) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

event_loop::timer event_loop::after(duration delay, callback when_due) {
    auto const when = clock::now() + std::chrono::duration_cast<clock::duration>(delay);
    timers_.emplace(when, due{next_timer_, std::move(when_due)});
    return next_timer_++;
}

void event_loop::cancel(timer which) noexcept {
    auto const found = std::ranges::find_if(timers_, [&](auto const& t) { return t.second.id == which; });
    if (found != timers_.end()) timers_.erase(found);
}

int event_loop::wait_ms() const {
    if (timers_.empty()) return -1;
    auto const left = std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first - clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

void event_loop::fire_due_timers() {
    auto const now = clock::now();
    while (running_ && !timers_.empty() && timers_.begin()->first <= now) {
        auto const call = std::move(timers_.begin()->second.call);
        timers_.erase(timers_.begin());
        call();
    }
}

void event_loop::run() {
    running_ = true;
    std::array<epoll_event, 64> events;
    while (running_) {
        int const ready = ::epoll_wait(epoll_.get(), events.data(), events.size(), wait_ms());
        if (ready < 0 && errno != EINTR) throw_system("epoll_wait", "in the launcher's loop");
        for (int i = 0; i < ready && running_; ++i) {
            auto const& one = events[static_cast<std::size_t>(i)];
            call(one.data.fd, one.events);
        }
        fire_due_timers();
    }
}

}  // namespace muster
