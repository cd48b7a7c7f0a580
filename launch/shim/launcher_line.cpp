#include "launch/shim/launcher_line.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "launch/wire/launcher_link.hpp"

namespace muster {

using kind = wire::output_piece::kind;

void output_sender::write(int fd, std::string lines, void const* /*stream*/) {
    push(fd == 2 ? kind::err : kind::out, std::move(lines));
}

void output_sender::note(std::string line) {
    push(kind::note, std::move(line));
}

void output_sender::push(kind what, std::string bytes) {
    if (bytes.empty() || closed_) return;
    waiting_.push_back({what, std::move(bytes)});
    send_some();
}

void output_sender::add_room(std::size_t bytes) {
    room_ += bytes;
    send_some();
}

void output_sender::close() {
    closed_ = true;
    waiting_.clear();
}

/// A note goes as one frame, so that it stays a line, with room or without: it is short.
void output_sender::send_some() {
    while (!waiting_.empty()) {
        auto& first = waiting_.front();
        bool const whole = first.what == kind::note;
        auto const left = std::string_view(first.bytes).substr(first.sent);
        auto const size = whole ? left.size() : std::min({left.size(), room_, wire::largest_output_bytes});
        if (size == 0) return;
        if (!whole) room_ -= size;
        send_(wire::encode(wire::output_piece{first.what, left.substr(0, size)}));
        if (waiting_.empty()) return;  // closed by the connection's end
        first.sent += size;
        if (first.sent == first.bytes.size()) waiting_.pop_front();
    }
}

namespace {

constexpr std::size_t largest_frame_bytes = 64u << 20;
constexpr duration call_patience{2};

/// Standard output, to which nothing of this process goes, is standard error afterwards.
unique_fd take_agent_socket() {
    unique_fd socket(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    return socket;
}

}  // namespace

launcher_line::launcher_line(event_loop& loop, environment const& variables, std::string host, callbacks calls)
    : loop_(loop), variables_(variables), host_(std::move(host)), calls_(std::move(calls)) {
    if (!variables_.has(agent_socket_variable)) return;
    agent_ =
        std::make_unique<frame_channel>(loop_, take_agent_socket(),
                                        frame_channel::callbacks{[this](std::string_view frame) { on_agent_frame(frame); },
                                                                 [this](std::string const& reason) { on_agent_gone(reason); }},
                                        largest_frame_bytes);
}

void launcher_line::open() {
    if (!agent_) {
        auto link = connect_to_launcher(variables_);
        fd_ = link.socket.get();
        direct_ = std::make_unique<frame_channel>(
            loop_, std::move(link.socket),
            frame_channel::callbacks{[this](std::string_view frame) { calls_.on_message(wire::decode(frame)); }, calls_.on_gone},
            largest_frame_bytes);
        direct_->secure(std::move(link.session));
    }
    tell(introduce_shim(variables_, host_));
}

void launcher_line::set_lost_after(duration limit) {
    lost_after_ = limit;
    if (direct_) detect_lost_peer(fd_, lost_after_);
}

/// Returns the channel that messages take.
frame_channel* launcher_line::way() const noexcept {
    return agent_ && !left_agent_ ? agent_.get() : direct_.get();
}

/// Beside the agent, which is gone or stands still. Nobody answers where the launcher stands still too; it refuses where it has ended.
launcher_line::answer launcher_line::call_launcher() {
    if (direct_ && direct_->open()) return answer::given;
    try {
        auto link = connect_to_launcher(variables_, call_patience);
        fd_ = link.socket.get();
        detect_lost_peer(fd_, lost_after_);
        direct_ =
            std::make_unique<frame_channel>(loop_, std::move(link.socket),
                                            frame_channel::callbacks{[this](std::string_view frame) { on_direct_frame(frame); },
                                                                     [this](std::string const& reason) {
                                                                         if (left_agent_) calls_.on_gone(reason);
                                                                     }},
                                            largest_frame_bytes);
        direct_->secure(std::move(link.session));
    } catch (error const& why) {
        return why.code() == errc::not_found ? answer::refused : answer::none;
    }
    auto hello = introduce_shim(variables_, host_);
    hello.again = true;
    direct_->send(wire::encode(hello));
    return answer::given;
}

void launcher_line::leave_agent() {
    if (!std::exchange(left_agent_, true)) calls_.on_left_agent();
}

bool launcher_line::leave_agent_if_answered() {
    if (!agent_ || !may_leave_ || call_launcher() != answer::given) return false;
    leave_agent();
    return true;
}

/// An agent that answers again carries all as before; the connection beside it has not been used for anything that counts.
void launcher_line::on_agent_frame(std::string_view frame) {
    auto const event = read_event(frame);
    if (event && event->what == mpi_event::kind::ping) {
        agent_missed_ = 0;
        if (!left_agent_) direct_.reset();
    } else if (event) {
        calls_.on_event(*event);
    } else if (!left_agent_) {  // else of long ago
        calls_.on_message(wire::decode(frame));
    }
}

/// The launcher's word while the agent stands still. An end does not wait for the agent.
void launcher_line::on_direct_frame(std::string_view frame) {
    auto const message = wire::decode(frame);
    auto const* const signal = std::get_if<wire::signal>(&message);
    if ((signal != nullptr && signal->stop) || std::holds_alternative<wire::bye>(message)) leave_agent();
    if (auto const* const ping = std::get_if<wire::ping>(&message))
        return direct_->send(wire::encode(wire::pong{ping->number, missed_pings()}));
    calls_.on_message(message);
}

void launcher_line::on_agent_gone(std::string const& reason) {
    if (!left_agent_ && !leave_agent_if_answered()) calls_.on_gone(reason);
}

void launcher_line::watch_agent() {
    if (!agent_ || left_agent_ || !agent_->open()) return;
    if (agent_missed_ > 0 && call_launcher() == answer::refused)
        return calls_.on_gone("its agent does not answer, and it has ended");
    ++agent_missed_;
    tell_agent(mpi_event::kind::ping);
    loop_.after(lost_after_ / 6, [this] { watch_agent(); });
}

void launcher_line::send(std::string_view frame) {
    if (auto* const to = way()) to->send(frame);
}

void launcher_line::tell_agent(mpi_event::kind what) {
    if (agent_) agent_->send(encode(mpi_event{what}));
}

bool launcher_line::is_open() const {
    return way()->open();
}

}  // namespace muster
