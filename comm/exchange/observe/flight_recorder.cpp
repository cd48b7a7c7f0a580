#include "comm/exchange/observe/flight_recorder.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace muster {

namespace {

std::int64_t now_us() noexcept {
    using namespace std::chrono;
    return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

flight_recorder::session::session(flight_recorder& of) noexcept : of_(of), lock_(of.guard_), now_us_(now_us()) {}

std::uint64_t flight_recorder::session::begin(int set, std::uint64_t sequence, exchange_kind kind, std::string_view name,
                                              std::uint64_t bytes) noexcept {
    slot& into = of_.ring_[of_.next_ % depth];
    into.sequence = sequence;
    into.bytes = bytes;
    into.started_us = now_us_;
    into.finished_us = 0;
    into.set = set;
    into.kind = kind;
    into.name_size = static_cast<std::uint8_t>(std::min(name.size(), longest_name));
    std::copy_n(name.data(), into.name_size, into.name.data());
    return of_.next_++;
}

void flight_recorder::session::end(std::uint64_t which) noexcept {
    if (of_.next_ - which <= depth) of_.ring_[which % depth].finished_us = now_us_;
}

std::vector<flight_record> flight_recorder::records() const {
    std::scoped_lock const lock(guard_);
    std::vector<flight_record> all;
    for (std::uint64_t i = next_ > depth ? next_ - depth : 0; i < next_; ++i) {
        slot const& from = ring_[i % depth];
        std::string name(from.name.data(), from.name_size);
        if (!name.empty() && name.front() == internal_name) name.clear();
        all.push_back({from.sequence, from.set, std::string(to_string(from.kind)), from.bytes, from.started_us, from.finished_us,
                       std::move(name)});
    }
    return all;
}

}  // namespace muster
