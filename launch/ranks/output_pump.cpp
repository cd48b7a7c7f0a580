#include "launch/ranks/output_pump.hpp"

#include <unistd.h>

#include <utility>

namespace muster {

namespace {

constexpr duration partial_patience{0.3};
constexpr double brief_drain_s = 2;
constexpr double drain_slice_s = 0.1;

}  // namespace

output_pump::output_pump(event_loop& loop, output_to where, std::function<void()> on_event)
    : loop_(loop), where_(where), on_event_(std::move(on_event)) {
    loop_.watch_readable(writer_.event_fd(), [this] { on_writer_event(); });
}

output_pump::~output_pump() {
    unwatch_all();
    loop_.unwatch(writer_.event_fd());
}

void output_pump::add(rank_stream& stream, std::function<void()> on_output) {
    watch(entries_.emplace_back(entry{&stream, std::move(on_output)}));
}

void output_pump::watch(entry& one) {
    if (one.stream->open()) loop_.watch_readable(one.stream->read_fd(), [this, &one] { on_readable(one); });
}

void output_pump::on_readable(entry& one) {
    auto& stream = *one.stream;
    one.on_output();
    if (!stream.read_some(writer_)) unwatch_ended(stream);
    if (where_ == output_to::user && !flush_pending_ && stream.awaits_flush()) {
        flush_pending_ = true;
        loop_.after(partial_patience, [this] { flush_partials(); });
    }
    if (!paused_ && writer_.congested()) {
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

/// On a terminal a prompt or a progress bar should show although its line is not complete.
void output_pump::flush_partials() {
    flush_pending_ = false;
    bool all = true;
    for (auto& each : entries_) all = each.stream->flush_stale_partial(writer_) && all;
    if (all) return;
    flush_pending_ = true;
    loop_.after(partial_patience, [this] { flush_partials(); });
}

void output_pump::on_writer_event() {
    writer_.clear_event();
    if (on_event_) on_event_();
    if (paused_ && !writer_.congested()) {
        paused_ = false;
        for (auto& each : entries_) watch(each);
    }
    if (where_ != output_to::user || !writer_.broken(STDOUT_FILENO)) return;
    for (auto& each : entries_)
        if (each.stream->target() == STDOUT_FILENO && each.stream->open()) {
            loop_.unwatch(each.stream->read_fd());
            each.stream->close();
        }
}

void output_pump::read_for_now(rank_stream& stream) {
    if (!stream.open()) return;
    stream.read_for_now(writer_);
    if (!stream.open()) unwatch_ended(stream);
}

void output_pump::finish() {
    unwatch_all();
    for (auto& each : entries_) {
        each.stream->read_all(writer_);
        each.stream->flush_partial(writer_);
    }
}

void output_pump::drain_briefly() {
    writer_.drain(brief_drain_s);
}

void output_pump::drain_until(std::function<bool()> const& interrupted) {
    while (!writer_.drain(drain_slice_s) && !interrupted()) {
    }
}

}  // namespace muster
