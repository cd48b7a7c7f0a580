#include "launch/run/members/spare_log.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace muster {

void spare_log::note_place(int seat, std::string place) {
    if (records_.contains(seat)) return void(record_of(seat).place = std::move(place));
    records_[seat] = run_.outcome.spares.size();
    run_.outcome.spares.push_back({.number = known_[seat].spare, .place = std::move(place)});
}

void spare_log::note_wait(int seat) {
    known_[seat].plays = rank_evidence::part::waiting;
    if (run_.options.verbose) events_.say(fmt::format("{} waits for the place of a lost rank", known_.name_of(known_[seat])));
}

void spare_log::note_end(int seat, std::string const& what, std::string const& then) {
    record_of(seat).end = what;
    if (!run_.options.quiet) events_.say(fmt::format("note: {} {}; {}", known_.name_of(known_[seat]), what, then));
}

std::string spare_log::note_generation(generation const& now, std::vector<int> const& seats, std::string const& why) {
    std::vector<std::string> parts;
    if (!why.empty()) parts.push_back(why);
    for (int const seat : seats) {
        if (!records_.contains(seat) || record_of(seat).generation >= 0) continue;
        auto& record = record_of(seat);
        record.generation = now.number;
        record.rank = known_[seat].number;
        record.member = known_.members[static_cast<std::size_t>(seat)];
        parts.push_back(fmt::format("spare {} is rank {}", record.number, record.rank));
    }
    return join(parts, "; ");
}

}  // namespace muster
