#include "launch/shim/output_sender.hpp"

#include <algorithm>
#include <utility>

namespace muster {

using kind = wire::output_piece::kind;

void output_sender::write(int fd, std::string block, void const* /*stream*/) {
    push(fd == 2 ? kind::err : kind::out, std::move(block));
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

}  // namespace muster
