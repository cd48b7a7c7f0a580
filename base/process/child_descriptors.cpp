#include "base/process/child_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"

namespace muster {

namespace {

/// The highest descriptor that programs started by this one inherit.
int highest_inherited() {
    int highest = STDERR_FILENO;
    std::error_code fault;
    for (std::filesystem::directory_iterator entry("/proc/self/fd", fault), end; !fault && entry != end; entry.increment(fault)) {
        int const fd = static_cast<int>(parse_integer(entry->path().filename().string()).value_or(-1));
        int const flags = ::fcntl(fd, F_GETFD);
        if (flags >= 0 && (flags & FD_CLOEXEC) == 0) highest = std::max(highest, fd);
    }
    return highest;
}

/// Three descriptors of /dev/null, held as long as the thread lives.
struct set_aside {
    set_aside() {
        if (!null) throw_system("open", "/dev/null", 0, "make that device: mknod /dev/null c 1 3");
        for (int i = 0; i < 3; ++i) {
            held[i].reset(::fcntl(null.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
            numbers[i] = held[i].get();
            if (!held[i]) throw_system("fcntl", "for a new process", 0, "raise the limit of open files with ulimit -n");
        }
        // Not in order where another thread closes a lower one meanwhile.
        first_unneeded = static_cast<unsigned>(std::max({highest_inherited(), numbers[0], numbers[1], numbers[2]}) + 1);
    }
    unique_fd null{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    unique_fd held[3];
    int numbers[3];
    unsigned first_unneeded;
};

/// Made with a thread's first child: what is opened later and not closed at exec by an oversight is not passed on.
set_aside const& reserved() {
    thread_local set_aside const three;
    return three;
}

}  // namespace

child_descriptors::child_descriptors(int const (&from)[3]) {
    auto const& own = reserved();
    for (int i = 0; i < 3; ++i) {
        is_null_[i] = from[i] < 0;  // which it is already
        if (!is_null_[i] && ::dup3(from[i], own.numbers[i], O_CLOEXEC) < 0) throw_system("dup3", "for a new process");
    }
}

/// Else this process would hold the other end of a pipe.
child_descriptors::~child_descriptors() {
    auto const& own = reserved();
    for (int i = 0; i < 3; ++i)
        if (!is_null_[i]) ::dup3(own.null.get(), own.numbers[i], O_CLOEXEC);
}

int const* child_descriptors::numbers() const noexcept {
    return reserved().numbers;
}

unsigned child_descriptors::first_unneeded() const noexcept {
    return reserved().first_unneeded;
}

}  // namespace muster
