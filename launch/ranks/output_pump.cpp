#include "launch/ranks/output_pump.hpp"

#include <utility>

namespace muster {

void output_pump::add(rank_stream& stream, std::function<void()> on_output) {
    watch(entries_.emplace_back(entry{&stream, std::move(on_output)}));
}

void output_pump::watch(entry& one) {
    if (one.stream->open()) loop_.watch_readable(one.stream->read_fd(), [this, &one] { on_readable(one); });
}

void output_pump::on_readable(entry& one) {
    auto& stream = *one.stream;
    one.on_output();
    if (stream.read_some(sink_) == stream_read::end) unwatch_ended(stream);
    if (!flush_pending_ && stream.awaits_flush()) {
        flush_pending_ = true;
        loop_.after(partial_patience, [this] { flush_partials(); });
    }
    if (!paused_ && sink_.congested()) {
        paused_ = true;
        unwatch_all();
    }
}

/// Before the descriptor is closed: a new process that has not yet come to its program holds a copy of it, and the loop would be woken
/// for it again and again, with no way left to take it out.
void output_pump::unwatch_ended(rank_stream& stream) {
    loop_.unwatch(stream.read_fd());
    stream.close();
}

void output_pump::unwatch_all() {
    for (auto& each : entries_)
        if (each.stream->open()) loop_.unwatch(each.stream->read_fd());
}

void output_pump::flush_partials() {
    flush_pending_ = false;
    bool all = true;
    for (auto& each : entries_) all = each.stream->flush_some(sink_) && all;
    if (all) return;
    flush_pending_ = true;
    loop_.after(partial_patience, [this] { flush_partials(); });
}

void output_pump::resume() {
    if (!paused_ || sink_.congested()) return;
    paused_ = false;
    for (auto& each : entries_) watch(each);
}

void output_pump::close_streams_to(int target) {
    for (auto& each : entries_)
        if (each.stream->target() == target && each.stream->open()) unwatch_ended(*each.stream);
}

void output_pump::read_for_now(rank_stream& stream) {
    if (!stream.open()) return;
    stream.read_for_now(sink_);
    if (!stream.open()) unwatch_ended(stream);
}

void output_pump::finish() {
    unwatch_all();
    for (auto& each : entries_) {
        each.stream->read_all(sink_);
        each.stream->flush_partial(sink_);
    }
}

}  // namespace muster
