#include "launch/keep/state_holder.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <new>
#include <string>

#include "base/error.hpp"
#include "base/process/this_process.hpp"
#include "launch/keep/keeper_group.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/signal_table.hpp"
#include "launch/wire/frame_channel.hpp"
#include "pmix/kept_layout.hpp"

namespace muster {

namespace {

constexpr duration longest_end{3};

[[noreturn]] void lead(run_context const& run, unique_fd launcher) {
    ignore_signals(process_kind::keepers);  // the guardian ends it
    ::setsid();
    ::prctl(PR_SET_NAME, "muster-keepers");
    try {
        keeper_group(run, std::move(launcher)).run();
    } catch (std::exception const& e) {
        fmt::print(stderr, "muster: error: --keep-state: {}\n", e.what());
    }
    std::fflush(nullptr);
    ::_exit(0);
}

}  // namespace

state_holder::state_holder() : memory_(kept::make_memory()) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw_system("socketpair", "for --keep-state");
    near_.reset(ends[0]);
    far_.reset(ends[1]);
    void* const page = ::mmap(nullptr, sizeof *leader_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw_system("mmap", "for --keep-state");
    leader_ = new (page) std::atomic<pid_t>(0);
}

state_holder::~state_holder() {
    ::munmap(leader_, sizeof *leader_);
}

/// The leader becomes a child of the guardian: this launcher ends all that is below it with its ranks.
void state_holder::start_keepers(run_context const& run) {
    std::fflush(nullptr);
    auto const failed = [](int code) { throw_system("fork", "the process that leads the keepers", code); };
    pid_t const between = ::fork();
    if (between < 0) failed(errno);
    if (between == 0) {
        near_.reset();
        pid_t const child = ::fork();
        if (child == 0) lead(run, std::move(far_));
        if (child > 0) leader_->store(child);
        ::_exit(child > 0 ? 0 : errno);
    }
    int status = 0;
    while (::waitpid(between, &status, 0) < 0 && errno == EINTR) {
    }
    if (leader() == 0) failed(WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN);
}

wire::states_placed state_holder::place(wire::place_states const& where) {
    auto const order = with_frame_header(wire::encode(where));
    auto const fail = [](std::string const& why) -> error {
        return error(errc::unavailable, "--keep-state: the process that leads the nodes' keepers " + why);
    };
    for (std::size_t done = 0; done < order.size();) {
        auto const n = ::send(near_.get(), order.data() + done, order.size() - done, MSG_NOSIGNAL);
        if (n <= 0 && errno != EINTR) throw fail("is gone");
        if (n > 0) done += static_cast<std::size_t>(n);
    }
    // As long as that process lives: large states take long, and it does without keepers that do not answer.
    auto const read = [&](std::size_t bytes) {
        std::string text(bytes, '\0');
        for (std::size_t done = 0; done < bytes;) {
            pollfd one{near_.get(), POLLIN, 0};
            if (::poll(&one, 1, 100) <= 0) {
                if (!is_alive(leader())) throw fail("has ended");
                continue;
            }
            auto const n = ::recv(near_.get(), text.data() + done, bytes - done, 0);
            if (n <= 0 && errno != EINTR) throw fail("is gone");
            if (n > 0) done += static_cast<std::size_t>(n);
        }
        return text;
    };
    auto message = wire::decode(read(frame_size(read(frame_header_bytes))));
    auto* const placed = std::get_if<wire::states_placed>(&message);
    if (placed == nullptr) throw fail("does not answer in order");
    return std::move(*placed);
}

void state_holder::end() noexcept {
    if (leader() == 0) return;
    near_.reset();
    auto const end = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(longest_end);
    timespec const pause{0, 2'000'000};
    while (::waitpid(leader(), nullptr, WNOHANG) == 0 && event_loop::clock::now() < end) ::nanosleep(&pause, nullptr);
}

}  // namespace muster
