#include "launch/keep/copy_sender.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/throw_error.hpp"
#include "launch/keep/copy_frames.hpp"
#include "launch/system/network.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/launcher_link.hpp"

namespace muster {

namespace {

constexpr int most_on_the_way = 8;  ///< pieces
constexpr duration peer_lost_after{15};

/// Holds the connection; one thread, blocking.
class peer {
  public:
    peer(keeper_address const& to, std::atomic<int>& socket) : link_(connect(to)) {
        detect_lost_peer(link_.socket.get(), peer_lost_after);
        socket.store(link_.socket.get());
        wire::hello hello;
        hello.pid = ::getpid();
        hello.host = short_host_name();
        try {
            say(wire::encode(hello));
        } catch (...) {
            socket.store(-1);  // before it is closed and its number reused
            throw;
        }
    }

    void say(std::string const& frame) {
        auto const bytes = with_frame_header(link_.session->seal(frame));
        for (std::size_t done = 0; done < bytes.size();) {
            auto const n = ::send(link_.socket.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
            if (n < 0 && may_go_on(POLLOUT)) continue;
            if (n <= 0) throw_system("send", "to the keeper of the next node");
            done += static_cast<std::size_t>(n);
        }
    }

    /// Throws errc::unavailable with the reason for a refusal.
    void hear(wire::copy_frame::kind wanted) {
        auto const frame = receive(frame_size(receive(frame_header_bytes)));
        auto const opened = link_.session->open(frame);
        auto const answer = opened ? wire::read_copy_frame(*opened) : std::nullopt;
        if (answer && answer->what == wanted) return;
        bool const refused = answer && answer->what == wire::copy_frame::kind::refused;
        throw error(errc::unavailable, refused ? std::string(answer->bytes) : "the keeper there does not answer in order");
    }

  private:
    /// Words the error for a keeper: that of a shim would be about muster run.
    static launcher_link connect(keeper_address const& to) try {
        return connect_to_launcher(directions_to(to), duration(5));
    } catch (error const&) {
        throw_error(errc::unavailable,
                    "the keeper at {} does not answer: its node is gone or cannot be reached from {}, or the keeper has ended",
                    with_port(to.address, to.port), short_host_name());
    }

    static environment directions_to(keeper_address const& to) {
        environment directions;
        directions.set("MUSTER_LAUNCHER", with_port(to.address, to.port));
        directions.set("MUSTER_TOKEN", to.key);
        return directions;
    }

    /// Waits after a call that would block, until it can go on; returns false after any other error.
    bool may_go_on(short what) const {
        if (errno == EINTR) return true;
        if (errno != EAGAIN) return false;
        pollfd one{link_.socket.get(), what, 0};
        ::poll(&one, 1, -1);
        return true;
    }

    std::string receive(std::size_t bytes) {
        if (bytes > 4096) throw error(errc::invalid_data, "an answer of the keeper there is too long");
        std::string text(bytes, '\0');
        for (std::size_t done = 0; done < bytes;) {
            auto const n = ::recv(link_.socket.get(), text.data() + done, bytes - done, 0);
            if (n < 0 && may_go_on(POLLIN)) continue;
            if (n <= 0) throw error(errc::unavailable, "the connection to the keeper there has ended");
            done += static_cast<std::size_t>(n);
        }
        return text;
    }

    launcher_link link_;
};

void send_copy(peer& to, copy_sender::item const& one, std::atomic<bool> const& stop) {
    using kind = wire::copy_frame::kind;
    auto const& what = one.what;
    to.say(wire::encode(wire::copy_frame{kind::head,
                                         one.for_neighbour,
                                         static_cast<std::uint32_t>(what.part),
                                         what.number,
                                         what.step,
                                         what.bytes,
                                         what.sum,
                                         {},
                                         what.by}));
    std::vector<std::byte> block(wire::largest_piece_bytes);
    int on_the_way = 1;
    for (std::uint64_t at = 0; at < what.bytes; at += block.size()) {
        if (stop.load()) throw error(errc::unavailable, "it was given up");
        auto const part =
            std::span(block).first(static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), what.bytes - at)));
        one.store->read(what, at, part);
        to.say(wire::encode(
            wire::copy_frame{.what = kind::piece, .bytes = {reinterpret_cast<char const*>(part.data()), part.size()}}));
        if (++on_the_way >= most_on_the_way) to.hear(kind::taken), --on_the_way;
    }
    to.say(wire::encode(wire::copy_frame{.what = kind::end}));
    for (; on_the_way > 0; --on_the_way) to.hear(kind::taken);
    to.hear(kind::kept);
}

}  // namespace

copy_sender::copy_sender(event_loop& loop, keeper_address to, std::vector<item> items,
                         std::function<void(std::string const& fault)> on_end)
    : loop_(loop), to_(std::move(to)), items_(std::move(items)) {
    std::tie(ended_read_, ended_write_) = make_pipe();
    loop_.watch_readable(ended_read_.get(), [this, on_end = std::move(on_end)] {
        loop_.unwatch(ended_read_.get());
        thread_.join();
        auto const tell = on_end;  // the call may destroy this object
        auto const fault = fault_;
        tell(fault);
    });
    thread_ = std::thread([this] {
        send_all();
        ended_write_.reset();
    });
}

copy_sender::~copy_sender() {
    stop_.store(true);
    if (int const fd = socket_.load(); fd >= 0 && thread_.joinable()) ::shutdown(fd, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    loop_.unwatch(ended_read_.get());
}

void copy_sender::send_all() try {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    peer next(to_, socket_);
    try {
        for (auto const& one : items_) send_copy(next, one, stop_);
        socket_.store(-1);
    } catch (...) {
        socket_.store(-1);
        throw;
    }
} catch (std::exception const& e) {
    fault_ = e.what();
}

}  // namespace muster
