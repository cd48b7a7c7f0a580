#include "base/process/process_starter.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/process/child_descriptors.hpp"

namespace muster {

namespace {

constexpr int most_on_their_way = 16;

/// Sanitizers keep a record of each thread, which a child that runs beside it would share.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool one_by_one = true;
#else
constexpr bool one_by_one = false;
#endif

}  // namespace

process_starter::process_starter(int count) : null_(::open("/dev/null", O_RDWR | O_CLOEXEC)) {
    if (!null_) throw_system("open", "/dev/null", 0, "make that device: mknod /dev/null c 1 3");
    int highest = static_cast<int>(child_descriptors({-1, -1, -1}).first_unneeded()) - 1;  // set aside now, for the first one
    for (int i = 0; i < (one_by_one ? 0 : std::min(count - 1, most_on_their_way)); ++i) {
        auto& one = *places_.emplace_back(std::make_unique<place>());
        for (std::size_t k = 0; k < one.held.size(); ++k) {
            one.held[k].reset(::fcntl(null_.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
            one.numbers[k] = one.held[k].get();
            if (!one.held[k]) throw_system("fcntl", "for a new process", 0, "raise the limit of open files with ulimit -n");
            highest = std::max(highest, one.numbers[k]);
        }
    }
    first_unneeded_ = static_cast<unsigned>(highest + 1);
}

process_starter::~process_starter() {
    for (auto const& each : places_) free_place(*each);
}

pid_t process_starter::begin(process_request const& request) {
    if (!std::exchange(any_, true) || places_.empty() || !child_image::knows_close_range()) return start_process(request);
    auto& one = places_[next_];
    next_ = (next_ + 1) % places_.size();
    free_place(*one);
    int const from[]{request.stdin_fd, request.stdout_fd, request.stderr_fd};
    for (std::size_t k = 0; k < one->numbers.size(); ++k) {
        one->set[k] = from[k] >= 0;
        if (one->set[k] && ::dup3(from[k], one->numbers[k], O_CLOEXEC) < 0) throw_system("dup3", "for a new process");
    }
    one->child.emplace(request, one->numbers.data(), first_unneeded_);
    one->on_its_way = 1;
    pid_t const pid = one->child->clone(one->stack, CLONE_CHILD_CLEARTID, &one->on_its_way);
    if (pid >= 0) return pid;
    one->on_its_way = 0;
    one->child->throw_failure();
}

/// Waits for the child that has it. Its descriptors become /dev/null: else this process would hold the other end of a pipe.
void process_starter::free_place(place& one) noexcept {
    for (pid_t seen = 0; (seen = one.on_its_way) != 0;)
        ::syscall(SYS_futex, &one.on_its_way, FUTEX_WAIT, seen, nullptr, nullptr, 0);
    if (!one.child) return;
    for (std::size_t k = 0; k < one.numbers.size(); ++k)
        if (one.set[k]) ::dup3(null_.get(), one.numbers[k], O_CLOEXEC);
    if (one.child->failure().step != nullptr && !failed_) try {
            one.child->throw_failure();
        } catch (...) {
            failed_ = std::current_exception();
        }
    one.child.reset();
}

void process_starter::finish() {
    for (auto const& each : places_) free_place(*each);
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
}

}  // namespace muster
