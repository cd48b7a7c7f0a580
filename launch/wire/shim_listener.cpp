#include "launch/wire/shim_listener.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/error.hpp"

namespace muster {

namespace {

constexpr duration greeting_limit{3};
constexpr duration hello_limit{10};  ///< after the greeting
constexpr duration between_checks{0.5};
constexpr std::size_t other_callers = 64;  ///< at once, in addition to the shims
constexpr int accepts_a_turn = 16;
constexpr std::size_t largest_hello_bytes = 4096;
/// This is the most that the kernel grants (net.core.rmem_max), and more than the shims may send on their own
/// (run/remote_output.cpp): a stopped launcher reads nothing, and the kernel closes connections without room for some seconds.
constexpr int receive_buffer_bytes = 512 << 10;

unique_fd spare_descriptor() {
    return unique_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

shim_listener::shim_listener(event_loop& loop, std::size_t shims, duration lost_after, arrival on_arrival)
    : loop_(loop),
      most_callers_(shims + other_callers),
      lost_after_(lost_after),
      on_arrival_(std::move(on_arrival)),
      key_(make_run_key()),
      listener_(listen_on_all()),
      spare_(spare_descriptor()) {
    ::fcntl(listener_.socket.get(), F_SETFL, O_NONBLOCK);
    ::setsockopt(listener_.socket.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
    loop_.watch_readable(listener_.socket.get(), [this] { on_callers(); });
}

shim_listener::~shim_listener() {
    if (refused_ > 1) spdlog::info("{} connections to muster's port proved nothing and were closed", refused_);
    loop_.unwatch(listener_.socket.get());
}

/// Accepts a limited number in each turn of the loop: a flood of callers must not keep it from the ranks, signals and deadlines.
void shim_listener::on_callers() {
    for (int i = 0; i < accepts_a_turn && accept_one(); ++i) {
    }
}

bool shim_listener::accept_one() {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    unique_fd socket(::accept4(listener_.socket.get(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
        make_room();
        admit(std::move(socket), numeric_address(reinterpret_cast<sockaddr*>(&from), size));
        return true;
    }
    if (errno == ECONNABORTED || errno == EINTR) return true;
    if ((errno != EMFILE && errno != ENFILE) || !spare_) return false;
    // A caller that stays in the queue would wake the loop again and again.
    spare_.reset();
    socket.reset(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    bool const was_there = static_cast<bool>(socket);
    socket.reset();
    spare_ = spare_descriptor();
    if (was_there) ++refused_;
    return was_there;
}

bool shim_listener::speaks(caller const& one) {
    return !one.link || one.link->has_unread();
}

void shim_listener::make_room() {
    if (callers_.size() < most_callers_) return;
    auto oldest = std::ranges::find_if(callers_, [](auto const& one) { return !speaks(one.second); });
    if (oldest == callers_.end()) oldest = callers_.begin();
    if (refused_++ == 0)
        spdlog::warn("more than {} connections to muster's port have proved nothing, the oldest from {}; closing the oldest",
                     most_callers_, oldest->second.from);
    callers_.erase(oldest);
}

void shim_listener::admit(unique_fd socket, std::string const& from) {
    detect_lost_peer(socket.get(), lost_after_);
    auto const id = next_caller_++;
    caller one;
    one.from = from;
    one.due = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(greeting_limit);
    one.link =
        std::make_unique<frame_channel>(loop_, std::move(socket),
                                        frame_channel::callbacks{[this, id](std::string_view frame) { on_frame(id, frame); },
                                                                 [this, id](std::string const& reason) { refuse(id, reason); }},
                                        greeting_bytes);
    callers_[id] = std::move(one);
    if (!std::exchange(dropping_, true)) loop_.after(between_checks, [this] { drop_late(); });
}

void shim_listener::on_frame(std::uint64_t from, std::string_view frame) {
    auto& one = callers_.at(from);
    if (one.greeted)
        on_hello(from, frame);
    else
        on_greeting(one, frame);
    if (one.link && !one.link->open()) refuse(from, "no greeting of a shim");
}

/// The answer proves the same to everybody who calls, and only a shim can use it: it fits only this connection's nonces.
void shim_listener::on_greeting(caller& one, std::string_view frame) {
    auto const of_shim = read_greeting(frame);
    if (!of_shim) return one.link->close();
    auto const of_launcher = make_nonce();
    one.link->send(make_answer(of_launcher));
    one.link->secure(std::make_unique<secure_session>(key_, wire_end::launcher, *of_shim, of_launcher));
    one.link->send("");
    one.link->set_largest_frame(largest_hello_bytes);
    one.greeted = true;
    one.due = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(hello_limit);
}

/// The frame has opened, so a shim of this run made it.
void shim_listener::on_hello(std::uint64_t from, std::string_view frame) {
    auto& link = callers_.at(from).link;
    try {
        auto const message = wire::decode(frame);
        if (auto const* const hello = std::get_if<wire::hello>(&message)) on_arrival_(*hello, link);
    } catch (error const& e) {
        spdlog::warn(
            "a shim of this run called, and its first message cannot be read; is the same muster installed on each node? {}",
            e.what());
    }
    if (link) link->send(wire::encode(wire::bye{0}));
    forget(from);
}

void shim_listener::refuse(std::uint64_t which, std::string const& why) {
    auto const found = callers_.find(which);
    if (found == callers_.end()) return;
    if (refused_++ == 0) spdlog::info("a connection from {} to muster's port proved nothing: {}", found->second.from, why);
    forget(which);
}

/// Waits for the next turn of the loop, because the channel may be in a callback.
void shim_listener::forget(std::uint64_t which) {
    loop_.after(duration(0), [this, which] { callers_.erase(which); });
}

/// Spares who has spoken, since on a busy machine this process may be the one that is late.
void shim_listener::drop_late() {
    auto const now = event_loop::clock::now();
    for (auto one = callers_.begin(); one != callers_.end();)
        if (one->second.due > now || speaks(one->second)) {
            ++one;
        } else {
            if (refused_++ == 0) spdlog::info("a connection from {} to muster's port said nothing", one->second.from);
            one = callers_.erase(one);
        }
    dropping_ = !callers_.empty();
    if (dropping_) loop_.after(between_checks, [this] { drop_late(); });
}

}  // namespace muster
