#include "launch/run/remote/remote_output.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "launch/ranks/rank_stream.hpp"

namespace muster {

namespace {

constexpr std::size_t all_windows_bytes = 64u << 20;
constexpr std::size_t least_window_bytes = 16u << 10;
constexpr std::size_t least_shared_bytes = 2u << 10;
/// The kernel keeps this much for a stopped launcher (shim_listener.cpp). With more, it would give the connection up after some
/// seconds, since TCP_USER_TIMEOUT also applies to a receiver without room.
constexpr std::size_t most_window_bytes = 128u << 10;

}  // namespace

remote_output::remote_output(event_loop& loop, output_writer& writer, std::size_t ranks, std::size_t window,
                             std::function<void(int rank, std::size_t bytes)> make_room)
    : loop_(loop), writer_(writer), make_room_(std::move(make_room)), window_(window) {
    while (ranks_.size() < ranks) add();
}

void remote_output::add() {
    ranks_.push_back({{STDOUT_FILENO, ::isatty(STDOUT_FILENO) == 1, line_splitter()},
                      {STDERR_FILENO, ::isatty(STDERR_FILENO) == 1, line_splitter()}});
}

std::size_t remote_output::window(std::size_t ranks, std::size_t on_one_connection) {
    auto const of_memory = std::clamp(all_windows_bytes / std::max<std::size_t>(ranks, 1), least_window_bytes, most_window_bytes);
    auto const of_connection = most_window_bytes / std::max<std::size_t>(on_one_connection, 1);
    return std::min(of_memory, std::max(of_connection, least_shared_bytes));
}

void remote_output::set_format(int rank, line_format const& how) {
    auto& one = ranks_.at(static_cast<std::size_t>(rank));
    one.out.lines = line_splitter::without_tail(how);  // its shim keeps the tail
    one.err.lines = line_splitter::without_tail(how);
}

void remote_output::set_tag(int rank, line_format const& how) {
    auto& one = ranks_.at(static_cast<std::size_t>(rank));
    for (auto* stream : {&one.out, &one.err}) stream->lines.set_tag(how);
}

void remote_output::take(int rank, wire::output_piece const& piece) {
    if (piece.what == wire::output_piece::kind::note) return writer_.note(std::string(piece.bytes));
    auto& one = ranks_.at(static_cast<std::size_t>(rank));
    auto& stream = piece.what == wire::output_piece::kind::err ? one.err : one.out;
    writer_.write(stream.lines.destination(stream.target), stream.lines.push(piece.bytes), &stream);
    if (stream.lines.awaits_flush(stream.terminal) && !std::exchange(flush_pending_, true))
        loop_.after(partial_patience, [this] { flush_partials(); });
    bool const is_held = one.taken >= window_ / 2;
    one.taken += piece.bytes.size();
    if (is_held || one.taken < window_ / 2) return;
    if (writer_.congested())
        held_.push_back(rank);
    else
        make_room(rank);
}

void remote_output::make_room(int rank) {
    make_room_(rank, std::exchange(ranks_[static_cast<std::size_t>(rank)].taken, 0));
}

void remote_output::resume() {
    if (writer_.congested()) return;
    for (int const rank : std::exchange(held_, {})) make_room(rank);
}

void remote_output::finish(int rank) {
    auto& one = ranks_.at(static_cast<std::size_t>(rank));
    for (auto* stream : {&one.out, &one.err})
        writer_.write(stream->lines.destination(stream->target), stream->lines.finish(), stream);
}

void remote_output::flush_partials() {
    flush_pending_ = false;
    for (auto& one : ranks_)
        for (auto* stream : {&one.out, &one.err}) {
            writer_.write_unfinished(stream->lines.destination(stream->target), stream->lines.flush(stream->terminal), stream);
            flush_pending_ = flush_pending_ || stream->lines.awaits_flush(stream->terminal);
        }
    if (flush_pending_) loop_.after(partial_patience, [this] { flush_partials(); });
}

}  // namespace muster
