#include "launch/keep/state_holder.hpp"

#include <fcntl.h>
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
#include <chrono>
#include <cstdio>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/command/print_note.hpp"
#include "base/process/this_process.hpp"
#include "base/throw_error.hpp"
#include "launch/keep/keeper_group.hpp"
#include "launch/keep/kept_store.hpp"
#include "launch/keep/machines/placing.hpp"
#include "launch/keep/machines/state_arrangement.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/signal_table.hpp"
#include "launch/wire/frame_channel.hpp"
#include "pmix/kept_layout.hpp"

namespace muster {

namespace {

constexpr duration longest_end{3};
constexpr int look_ms = 100;

[[noreturn]] void lead(run_plan const& run, unique_fd launcher) {
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

/// The leader becomes a child of the guardian: this launcher ends all processes below it together with its ranks.
void state_holder::start_keepers(run_plan const& run) {
    std::fflush(nullptr);
    empty_sockets();
    leader_->store(0);
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

namespace {

using clock = event_loop::clock;

/// Exchanges frames with the process that leads the keepers, over the socket pair; this end never blocks on it.
class leader_talk {
  public:
    leader_talk(int fd, pid_t leader, std::optional<duration> time_left) : fd_(fd), leader_(leader) {
        if (time_left) wait_.end_s = time_left->count();
    }

    void say(std::string const& frame) {
        for (std::size_t done = 0; done < frame.size();) {
            auto const n = ::send(fd_, frame.data() + done, frame.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n > 0)
                done += static_cast<std::size_t>(n), note_life();
            else if (errno == EAGAIN)
                wait(POLLOUT);
            else if (errno != EINTR)
                throw fail("is gone");
        }
    }

    wire::message hear() { return wire::decode(receive(frame_size(receive(frame_header_bytes)))); }

  private:
    static error fail(std::string const& why) {
        return error(errc::unavailable, "--keep-state: the process that leads the nodes' keepers " + why);
    }

    double now_s() const { return duration(clock::now() - begin_).count(); }
    void note_life() { wait_.heard_s = now_s(); }

    std::string receive(std::size_t bytes) {
        std::string text(bytes, '\0');
        for (std::size_t done = 0; done < bytes;) {
            auto const n = ::recv(fd_, text.data() + done, bytes - done, MSG_DONTWAIT);
            if (n > 0)
                done += static_cast<std::size_t>(n), note_life();
            else if (n < 0 && errno == EAGAIN)
                wait(POLLIN);
            else if (n == 0 || errno != EINTR)
                throw fail("is gone");
        }
        return text;
    }

    void wait(short what) {
        pollfd one{fd_, what, 0};
        if (::poll(&one, 1, look_ms) > 0) return;
        switch (judge_leader(wait_, now_s(), is_alive(leader_))) {
            case leader_state::awaited: return;
            case leader_state::has_ended: throw fail("has ended");
            case leader_state::out_of_time:
                throw error(errc::timeout, "--timeout: the states that ranks had committed were not on their nodes in time");
            case leader_state::silent:
                ::kill(leader_, SIGKILL);  // a late answer would be taken for another one
                throw fail(fmt::format("has not answered for {}", format_duration(duration(patience_with_leader_s))));
        }
    }

    int fd_;
    pid_t leader_;
    clock::time_point begin_ = clock::now();
    leader_wait wait_;
};

}  // namespace

wire::states_placed state_holder::place_states(wire::place_states const& where, std::optional<duration> time_left) {
    leader_talk talk(near_.get(), leader(), time_left);
    talk.say(with_frame_header(wire::encode(where)));
    for (;;) {  // large states take long: every second it says that it is still busy
        auto message = talk.hear();
        auto* const placed = std::get_if<wire::states_placed>(&message);
        if (placed != nullptr && !placed->under_way) return std::move(*placed);
    }
}

/// Places states that are in this node's memory.
kept_places state_holder::settle_here(run_plan const& run) {
    kept_store store(unique_fd(::fcntl(memory_.get(), F_DUPFD_CLOEXEC, 0)));
    auto made = arrange_alone(store, static_cast<std::size_t>(run.map.world_size()));
    return {.fd = memory_.get(), .parts = std::move(made.parts), .free_part = made.free_part};
}

kept_places state_holder::make_ready(run_plan const& run, allocation const& everywhere, bool elsewhere) {
    bool const first = run.life.is_first(), several = everywhere.nodes.size() > 1;
    if (leader() == 0 && !several && elsewhere)
        throw_error(errc::unavailable,
                    "--keep-state: the ranks' only node, {}, is not that of muster run, whose memory holds what they commit; run "
                    "muster there, or leave the option out",
                    everywhere.nodes.front().name);
    if (leader() == 0 && !several) {
        if (run.options.keep_at_neighbour && first && !run.options.quiet)
            print_note("--keep-state node,neighbour: this run has one node, so no other has a copy of what its ranks commit");
        return first ? kept_places{.fd = memory_.get()} : settle_here(run);
    }
    if (leader() == 0 && run.options.discovery.given())
        throw error(errc::unavailable,
                    "--keep-state over several nodes is for hosts that are known from the start, and --host-discovery-script "
                    "names them as they come; leave one of the two out");
    auto const start_leader = [&] {
        run_plan all = run;
        all.given = everywhere;
        start_keepers(all);
    };
    if (leader() == 0) start_leader();
    std::vector<std::string> hosts;
    for (auto const& one : run.given.nodes) hosts.push_back(one.name);
    std::vector<std::size_t> node_of;
    for (auto const& place : run.map.places()) node_of.push_back(static_cast<std::size_t>(place.node));
    auto const where = ask_to_place(std::move(hosts), node_of, run.session_dir);
    wire::states_placed placed;
    for (int failures = 0;;) {
        try {
            auto const& limit = run.options.timeout;
            placed = place_states(where, limit ? std::optional(*limit - run.life.age()) : std::nullopt);
            break;
        } catch (error const& e) {
            if (e.code() != errc::unavailable || !asks_another_leader(first, ++failures)) throw;
            if (!run.options.quiet)
                print_note(
                    fmt::format("{}; what ranks had committed is lost, and they begin from what they find on disk; other keepers "
                                "hold what they commit from now on",
                                e.what()));
        }
        start_leader();
    }
    if (!run.options.quiet)
        for (auto const& note : placed.notes) print_note("--keep-state: " + note);
    if (run.options.verbose && !run.options.quiet && placed.step != 0)
        fmt::print(
            stderr, "muster: --keep-state: commit {} is whole for {}, on the nodes where they will run\n", placed.step,
            placed.world_size == where.world_size ? "all ranks" : fmt::format("the {} ranks that made it", placed.world_size));
    return {.files = std::move(placed.files), .parts = std::move(placed.parts), .free_part = placed.free_part};
}

/// Drops what a former leader has not read, or has sent to nobody.
void state_holder::empty_sockets() noexcept {
    std::array<char, 4096> rest{};
    for (int const fd : {near_.get(), far_.get()})
        while (::recv(fd, rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
        }
}

void state_holder::end() noexcept {
    if (leader() == 0) return;
    near_.reset();
    reap_within(leader(), longest_end);
}

}  // namespace muster
