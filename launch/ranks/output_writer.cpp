#include "launch/ranks/output_writer.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>

#include "base/error.hpp"
#include "base/process/start_thread.hpp"
#include "base/unique_fd.hpp"

namespace muster {

namespace {

/// Blocks are merged up to this size, which makes fewer writes when ranks print many short lines.
constexpr std::size_t merge_bytes = 65536;
constexpr double drain_slice_s = 0.1;

struct item {
    int fd;
    std::string block;
};

/// Returns 0, or errno.
int write_all(int fd, std::string const& block) {
    std::size_t done = 0;
    while (done < block.size()) {
        auto const n = ::write(fd, block.data() + done, block.size() - done);
        if (n >= 0) {
            done += static_cast<std::size_t>(n);
        } else if (errno == EAGAIN) {
            pollfd wait{fd, POLLOUT, 0};  // another process made the descriptor non-blocking
            ::poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

}  // namespace

struct output_writer::state {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<item> queue;
    std::size_t queued_bytes = 0;
    bool was_congested = false;
    bool writing = false;
    bool stop = false;
    bool broken[3] = {false, false, false};
    int fault = 0;
    unique_fd event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

    void wake() noexcept {
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const n = ::write(event.get(), &one, sizeof one);
    }

    void run() {
        std::unique_lock lock(mutex);
        for (;;) {
            changed.wait(lock, [this] { return stop || !queue.empty(); });
            if (stop) return;
            item const next = std::move(queue.front());
            queue.pop_front();
            writing = true;
            bool const gone = broken[next.fd];
            lock.unlock();
            int const failure = gone ? 0 : write_all(next.fd, next.block);
            lock.lock();
            writing = false;
            if (failure != 0) {
                broken[next.fd] = true;
                if (failure != EPIPE && fault == 0) fault = failure;
                wake();
            }
            queued_bytes -= next.block.size();
            if (was_congested && queued_bytes < high_water_bytes / 2) {
                was_congested = false;
                wake();
            }
            changed.notify_all();
        }
    }
};

output_writer::output_writer() : state_(std::make_shared<state>()) {
    if (!state_->event) throw_system("eventfd", "for the output writer");
    start_thread("for the ranks' output", [shared = state_] { shared->run(); }).detach();
}

output_writer::~output_writer() {
    std::scoped_lock const lock(state_->mutex);
    state_->stop = true;
    state_->changed.notify_all();
}

void output_writer::write(int fd, std::string block, void const* stream) {
    if (block.empty()) return;
    std::erase_if(watched_, [&](auto const& one) {
        auto const at = block.find(one.first);
        if (at != std::string::npos) one.second(std::string_view(block).substr(at + one.first.size()));
        return at != std::string::npos;
    });
    put(fd, std::move(block), stream);
}

void output_writer::write_unfinished(int fd, std::string block, void const* stream) {
    if (block.empty()) return;
    bool const ended = block.back() == '\n';  // a line with a tag
    write(fd, std::move(block), stream);
    unfinished_[fd] = ended ? nullptr : stream;
}

/// Puts muster's line on its own line; leaves the ranks' bytes unchanged.
void output_writer::note(std::string line) {
    if (within_line_[2] && unfinished_[2] == nullptr) line.insert(0, 1, '\n');
    put(2, std::move(line), nullptr);
}

void output_writer::put(int fd, std::string block, void const* stream) {
    if (block.empty() || fd == unshown) return;
    auto const* const before = std::exchange(unfinished_[fd], nullptr);
    within_line_[fd] = block.back() != '\n';
    if (before != nullptr && before != stream && !block.empty() && block.front() != '\r') block.insert(0, 1, '\n');
    std::scoped_lock const lock(state_->mutex);
    auto& queue = state_->queue;
    state_->queued_bytes += block.size();
    if (state_->queued_bytes > high_water_bytes) state_->was_congested = true;
    if (!queue.empty() && queue.back().fd == fd && queue.back().block.size() + block.size() <= merge_bytes)
        queue.back().block += block;
    else
        queue.push_back({fd, std::move(block)});
    state_->changed.notify_all();
}

bool output_writer::congested() const {
    std::scoped_lock const lock(state_->mutex);
    return state_->was_congested;
}

int output_writer::event_fd() const noexcept {
    return state_->event.get();
}

void output_writer::clear_event() noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] auto const n = ::read(state_->event.get(), &count, sizeof count);
}

bool output_writer::drain(double seconds) {
    std::unique_lock lock(state_->mutex);
    auto const empty = [this] { return state_->queue.empty() && !state_->writing; };
    if (seconds >= 0) return state_->changed.wait_for(lock, std::chrono::duration<double>(seconds), empty);
    state_->changed.wait(lock, empty);
    return true;
}

void output_writer::drain_until(std::function<bool()> const& interrupted) {
    while (!drain(drain_slice_s) && !interrupted()) {
    }
}

bool output_writer::broken(int fd) const {
    std::scoped_lock const lock(state_->mutex);
    return state_->broken[fd];
}

int output_writer::fault() const {
    std::scoped_lock const lock(state_->mutex);
    return state_->fault;
}

std::string output_writer::describe_fault() const {
    int const number = fault();
    if (number == 0) return {};
    return fmt::format("cannot write the ranks' output: {}; free space or send it elsewhere", std::strerror(number));
}

}  // namespace muster
