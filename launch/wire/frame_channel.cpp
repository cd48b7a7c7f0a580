#include "launch/wire/frame_channel.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

namespace muster {

namespace {

constexpr unsigned char event_mark = 0x12;
constexpr std::size_t number_bytes = 4;

void append_number(std::string& bytes, int number) {
    for (int shift = 24; shift >= 0; shift -= 8)
        bytes.push_back(static_cast<char>(static_cast<std::uint32_t>(number) >> shift & 0xff));
}

int read_number(std::string_view bytes) {
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < number_bytes; ++i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
    return static_cast<int>(number);
}

}  // namespace

namespace wire {

std::string encode(rank_frame const& one) {
    std::string frame;
    frame.reserve(1 + number_bytes + one.bytes.size());
    frame.push_back(static_cast<char>(one.what));
    append_number(frame, one.rank);
    frame.append(one.bytes);
    return frame;
}

std::optional<rank_frame> read_rank_frame(std::string_view frame) noexcept {
    if (frame.size() < 1 + number_bytes) return std::nullopt;
    auto const what = static_cast<rank_frame::kind>(frame.front());
    if (what != rank_frame::kind::frame && what != rank_frame::kind::closed) return std::nullopt;
    return rank_frame{read_number(frame.substr(1)), frame.substr(1 + number_bytes), what};
}

}  // namespace wire

std::string encode(mpi_event const& event) {
    std::string frame{static_cast<char>(event_mark), static_cast<char>(event.what)};
    append_number(frame, event.code);
    return frame;
}

std::optional<mpi_event> read_event(std::string_view frame) noexcept {
    if (frame.size() != 2 + number_bytes || static_cast<unsigned char>(frame[0]) != event_mark ||
        static_cast<unsigned char>(frame[1]) > static_cast<unsigned char>(mpi_event::kind::ping))
        return std::nullopt;
    return mpi_event{static_cast<mpi_event::kind>(frame[1]), read_number(frame.substr(2))};
}

}  // namespace muster

namespace muster::wire {

std::string encode(output_piece const& piece) {
    std::string frame;
    frame.reserve(1 + piece.bytes.size());
    frame.push_back(static_cast<char>(piece.what));
    frame.append(piece.bytes);
    return frame;
}

std::optional<output_piece> read_output(std::string_view frame) noexcept {
    if (frame.empty() || static_cast<unsigned char>(frame.front()) > static_cast<unsigned char>(output_piece::kind::err))
        return std::nullopt;
    return output_piece{static_cast<output_piece::kind>(frame.front()), frame.substr(1)};
}

}  // namespace muster::wire

namespace muster {

namespace {

constexpr std::size_t piece_bytes = 16u << 10;
/// Limits the unsent bytes that the kernel holds for a connection: many may wait at once.
constexpr int unsent_bytes = 128 << 10;

void append_header(std::string& bytes, std::size_t frame_bytes) {
    auto const size = static_cast<std::uint32_t>(frame_bytes);
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(size >> shift & 0xff));
}

}  // namespace

std::string with_frame_header(std::string_view frame) {
    std::string bytes;
    bytes.reserve(frame_header_bytes + frame.size());
    append_header(bytes, frame.size());
    bytes.append(frame);
    return bytes;
}

std::size_t frame_size(std::string_view header) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < frame_header_bytes; ++i) size = size << 8 | static_cast<unsigned char>(header[i]);
    return size;
}

frame_channel::frame_channel(event_loop& loop, unique_fd socket, callbacks what_to_do, std::size_t largest_frame)
    : loop_(loop),
      socket_(std::move(socket)),
      do_(std::make_shared<callbacks>(std::move(what_to_do))),
      largest_frame_(largest_frame) {
    ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
    int const on = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes, sizeof unsent_bytes);
    loop_.watch_readable(socket_.get(), [this] { on_readable(); });
}

frame_channel::~frame_channel() {
    close();
}

void frame_channel::set_callbacks(callbacks what_to_do, std::size_t largest_frame) {
    do_ = std::make_shared<callbacks>(std::move(what_to_do));
    largest_frame_ = largest_frame;
}

void frame_channel::close() noexcept {
    if (socket_) loop_.unwatch(socket_.get());
    waits_for_room_ = false;
    socket_.reset();
}

void frame_channel::fail(std::string const& reason) {
    if (!open()) return;
    close();
    auto const kept = do_;
    kept->on_closed(reason);
}

bool frame_channel::has_unread() const noexcept {
    int bytes = 0;
    return socket_ && ::ioctl(socket_.get(), FIONREAD, &bytes) == 0 && bytes > 0;
}

bool frame_channel::has_lost_peer() const noexcept {
    pollfd seen{.fd = socket_.get(), .events = POLLRDHUP, .revents = 0};
    return socket_ && ::poll(&seen, 1, 0) > 0;
}

void frame_channel::on_readable() {
    std::array<char, 64 * 1024> bytes;
    ssize_t const count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count < 0) return fail(errno == ECONNRESET ? std::string(closed_by_peer) : std::strerror(errno));
    if (count == 0) return fail(std::string(closed_by_peer));
    received_.append(bytes.data(), static_cast<std::size_t>(count));
    take_frames();
}

void frame_channel::take_frames() {
    std::size_t taken = 0;
    while (open() && received_.size() - taken >= frame_header_bytes) {
        std::size_t const size = frame_size(std::string_view(received_).substr(taken));
        if (size > largest_frame_ + (session_ ? sealing_bytes : 0))
            return fail(fmt::format("a message of {} bytes is longer than any of muster", size));
        if (received_.size() - taken - frame_header_bytes < size) break;
        if (!take(std::string_view(received_).substr(taken + frame_header_bytes, size))) return;
        taken += frame_header_bytes + size;
    }
    received_.erase(0, taken);
}

/// Returns false if it has closed the channel.
bool frame_channel::take(std::string_view frame) {
    std::optional<std::string> opened;
    bool more = false;
    if (session_) {
        opened = session_->open(frame, &more);
        if (!opened) return fail("a message that this run's other end did not send"), false;
        frame = *opened;
    }
    std::string whole;
    if (more || !pieces_.empty()) {
        if (pieces_.size() + frame.size() > largest_frame_)
            return fail(fmt::format("a message of more than {} bytes is longer than any of muster", largest_frame_)), false;
        pieces_ += frame;
        if (more) return true;
        whole.swap(pieces_);
        frame = whole;
    }
    auto const kept = do_;
    kept->on_frame(frame);
    return true;
}

void frame_channel::send(std::string_view frame) {
    if (open()) send(std::make_shared<std::string const>(frame));
}

void frame_channel::send(std::shared_ptr<std::string const> frame) {
    if (!open()) return;
    waiting_.push_back({std::move(frame), session_ != nullptr});
    if (!waits_for_room_) write_some();
}

/// Prepares the next bytes for the socket: a few short frames, or a piece of a long one.
void frame_channel::make_ready() {
    ready_.clear();
    sent_ = 0;
    while (!waiting_.empty() && ready_.size() < piece_bytes) {
        auto& first = waiting_.front();
        auto const left = std::string_view(*first.bytes).substr(first.done);
        auto const part = left.substr(0, piece_bytes);
        bool const more = part.size() < left.size();
        if (first.sealed) {
            auto const sealed = session_->seal(part, more);
            append_header(ready_, sealed.size());
            ready_ += sealed;
        } else {
            if (first.done == 0) append_header(ready_, left.size());
            ready_ += part;
        }
        first.done += part.size();
        if (!more) waiting_.pop_front();
    }
}

/// Returns false if the socket takes nothing for now.
bool frame_channel::write_ready() {
    if (ready_.empty()) make_ready();
    ssize_t const count = ::send(socket_.get(), ready_.data() + sent_, ready_.size() - sent_, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) return true;
    if (count < 0 && errno != EAGAIN) waiting_.clear(), ready_.clear();  // the reading side reports it
    if (count < 0) return false;
    sent_ += static_cast<std::size_t>(count);
    if (sent_ == ready_.size()) ready_.clear();
    return true;
}

void frame_channel::write_some() {
    while (open() && !sent_all() && write_ready()) {
    }
    if (!open() || sent_all() == !waits_for_room_) return;
    waits_for_room_ = !waits_for_room_;
    if (waits_for_room_)
        loop_.watch_room(socket_.get(), [this] { write_some(); });
    else
        loop_.unwatch_room(socket_.get());
}

void frame_channel::flush(duration limit) noexcept {
    auto const end = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(limit);
    while (open() && !sent_all()) {
        auto const left = std::chrono::ceil<std::chrono::milliseconds>(end - event_loop::clock::now()).count();
        pollfd one{socket_.get(), POLLOUT, 0};
        if (left <= 0 || ::poll(&one, 1, static_cast<int>(left)) <= 0) return;
        write_ready();
    }
}

}  // namespace muster
