#include "comm/tcp/line.hpp"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "base/codec/codec.hpp"
#include "base/process/network.hpp"

namespace muster::tcp {

namespace {

constexpr std::uint32_t magic = 0x6d746370;

}  // namespace

frame_text write_frame(frame const& what) noexcept {
    static_assert(frame_bytes == codec::least_bytes<std::uint32_t, frame>);
    frame_text bytes;
    codec::encode_to(bytes, magic, what);
    return bytes;
}

std::optional<frame> read_frame(std::span<std::byte const> bytes) noexcept try {
    std::uint32_t mark = 0;
    frame what;
    codec::reader from(bytes);
    from >> mark >> what;
    bool const fits = what.what == frame::kind::data || what.bytes <= longest_blame;
    return mark == magic && fits ? std::optional(what) : std::nullopt;
} catch (std::exception const&) {
    return std::nullopt;
}

namespace {

/// A connection without a sign of the other machine is lost after this time.
constexpr duration silence{20};

constexpr std::size_t longest_copy = std::size_t{64} << 20;

}  // namespace

void line::open(unique_socket socket) {
    int const on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    detect_lost_peer(socket.get(), silence);
    socket_ = std::move(socket);
    staging_ = std::make_unique_for_overwrite<std::byte[]>(staging_bytes);
    flush();
}

void line::send(ticket owner, frame const& head, std::byte const* data, transfers& counts) {
    ++counts.left;
    going_.push_back({owner, head, write_frame(head), data, &counts, {}});
    if (going_.size() == 1) flush();
}

void line::receive(ticket owner, frame const& head, std::byte* to, transfers& counts) {
    ++counts.left;
    coming_.push_back({owner, head, to, &counts});
}

void line::tell(frame head, std::string words) {
    head.bytes = words.size();
    going_.push_back({0, head, write_frame(head), nullptr, nullptr, std::move(words)});
    flush();
}

void line::finish(end how, std::string words) {
    if (end_ != end::none) return;
    end_ = how;
    words_ = std::move(words);
}

std::string_view line::excuse() const noexcept {
    if (coming_.empty()) return {};
    frame const& waited = coming_.front().head;
    return waited.sequence == excused_.sequence && waited.signature == excused_.signature ? std::string_view(excuse_)
                                                                                          : std::string_view();
}

void line::lose(std::string words) {
    finish(end::lost, std::move(words));
}

bool line::waits_for(ticket owner) const noexcept {
    auto const of = [owner](auto const& each) { return each.owner == owner; };
    return std::any_of(coming_.begin(), coming_.end(), of) || std::any_of(going_.begin(), going_.end(), of);
}

// ---- sending

/// Sends as many messages at once as the socket takes. If the other end takes none, the line has not ended: what it sent before must
/// still be read.
void line::flush() {
    while (socket_ && !deaf_ && !going_.empty()) {
        std::array<iovec, 16> parts;
        std::size_t used = 0, skip = sent_;
        auto const add = [&](void const* from, std::size_t bytes) {
            std::size_t const cut = std::min(skip, bytes);
            skip -= cut;
            if (cut == bytes) return;
            parts[used++] = {const_cast<std::byte*>(static_cast<std::byte const*>(from) + cut), bytes - cut};
        };
        for (auto each = going_.begin(); each != going_.end() && used + 2 <= parts.size(); ++each) {
            add(each->text.data(), each->text.size());
            add(each->data != nullptr ? static_cast<void const*>(each->data) : each->own.data(), each->head.bytes);
        }
        msghdr header{};
        header.msg_iov = parts.data();
        header.msg_iovlen = used;
        auto const went = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (went < 0 && errno == EINTR) continue;
        if (went < 0) {
            deaf_ = errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM;
            return;
        }
        sent_ += static_cast<std::size_t>(went);
        while (!going_.empty() && sent_ >= frame_bytes + going_.front().head.bytes) {
            sent_ -= frame_bytes + going_.front().head.bytes;
            if (going_.front().counts != nullptr) --going_.front().counts->left;
            going_.pop_front();
        }
    }
}

void line::drop() {
    for (auto const& each : coming_) --each.counts->left;
    coming_.clear();
    stopped_ = true;  // the rest of a message has nowhere to go
    for (auto const& each : going_)
        if (each.counts != nullptr) --each.counts->left;
    if (sent_ == 0) return going_.clear();
    outgoing first = std::move(going_.front());
    going_.clear();
    if (first.data != nullptr && first.head.bytes > longest_copy) return close();
    if (first.data != nullptr) first.own.assign(reinterpret_cast<char const*>(first.data), first.head.bytes);
    first.data = nullptr;
    first.counts = nullptr;
    going_.push_back(std::move(first));
}

bool line::part() noexcept {
    flush();
    if (!socket_ || deaf_) return false;
    if (going_.empty() && !std::exchange(parted_, true)) ::shutdown(socket_.get(), SHUT_WR);
    for (int reads = 0; reads < 16; ++reads) {
        auto const got = ::recv(socket_.get(), staging_.get(), staging_bytes, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) break;
        if (got <= 0) return false;  // it has ended or given up, too
    }
    int untaken = 0;
    return !going_.empty() || (::ioctl(socket_.get(), SIOCOUTQ, &untaken) == 0 && untaken > 0);
}

// ---- receiving

void line::pump(bool look) {
    flush();
    for (bool nothing = false;;) {
        while (end_ == end::none && !stopped_ && (within_ ? take_data() : begin_message())) {
        }
        if (!closed_.empty() && !has_unexpected()) finish(end::lost, closed_);
        bool const reads = within_ || look || deaf_ || !coming_.empty();
        if (!socket_ || end_ != end::none || stopped_ || nothing || !closed_.empty() || !reads || !fill(nothing)) return;
    }
}

/// Returns whether a message is there for a collective that this rank has not started yet.
bool line::has_unexpected() const noexcept {
    std::span<std::byte const> const there{staging_.get() + first_, filled_ - first_};
    if (within_ || !coming_.empty() || there.size() < frame_bytes) return false;
    auto const head = read_frame(there);
    return head && head->what == frame::kind::data;
}

/// Looks at the header. Returns false if more has to come first, if nobody expects the message yet, and at the end.
bool line::begin_message() {
    std::span<std::byte const> const there{staging_.get() + first_, filled_ - first_};
    if (there.size() < frame_bytes) return false;
    auto const head = read_frame(there);
    if (!head) {
        finish(end::lost, "it sent what is no message");
        return false;
    }
    if (head->what != frame::kind::data) {
        if (there.size() < frame_bytes + head->bytes) return false;
        std::string words(reinterpret_cast<char const*>(there.data()) + frame_bytes, head->bytes);
        first_ += frame_bytes + head->bytes;
        if (head->what == frame::kind::waits) {
            excuse_ = std::move(words);
            excused_ = *head;
            return true;
        }
        finish(head->what == frame::kind::left ? end::left : end::gave_up, std::move(words));
        return false;
    }
    if (coming_.empty()) return false;
    if (*head != coming_.front().head) {
        got_ = *head;
        finish(end::differs, {});
        return false;
    }
    first_ += frame_bytes;
    within_ = true;
    done_ = 0;
    return true;
}

/// Moves data from the staging memory to its place; returns whether the message is complete.
bool line::take_data() {
    incoming& now = coming_.front();
    std::size_t const bytes = std::min<std::size_t>(filled_ - first_, now.head.bytes - done_);
    if (bytes != 0) std::memcpy(now.to + done_, staging_.get() + first_, bytes);
    first_ += bytes;
    done_ += bytes;
    if (done_ < now.head.bytes) return false;
    --now.counts->left;
    coming_.pop_front();
    within_ = false;
    return true;
}

/// Reads from the socket: into the tensor if much of it is still to come, else into the staging memory. Returns false if nothing came, not even the
/// connection's end, or if there is no room.
bool line::fill(bool& nothing) {
    bool const direct = within_ && coming_.front().head.bytes - done_ >= staging_bytes / 4;
    if (!direct && first_ != 0) {
        std::memmove(staging_.get(), staging_.get() + first_, filled_ - first_);
        filled_ -= first_;
        first_ = 0;
    }
    std::byte* const to = direct ? coming_.front().to + done_ : staging_.get() + filled_;
    std::size_t const room = direct ? coming_.front().head.bytes - done_ : staging_bytes - filled_;
    if (room == 0) return false;
    ssize_t got = 0;
    do got = ::recv(socket_.get(), to, room, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got <= 0) {
        nothing = true;
        if (got == 0) closed_ = "it closed the connection";
        if (got < 0 && errno != EAGAIN) closed_ = std::strerror(errno);
        return !closed_.empty();
    }
    (direct ? done_ : filled_) += static_cast<std::size_t>(got);
    nothing = static_cast<std::size_t>(got) < room;  // another read would only say that there is no more
    return true;
}

}  // namespace muster::tcp
