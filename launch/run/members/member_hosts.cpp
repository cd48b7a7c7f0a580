// Members follow the hosts that come and go: newcomers are started there, and members leave.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/error.hpp"
#include "launch/run/gather_hosts.hpp"
#include "launch/run/members/member_world.hpp"

namespace muster {

void member_world::take_hosts(host_pool const& hosts) {
    std::vector<slot> coming, busy;
    for (auto const& one : seats_)
        if (!one.ended && (one.joins || one.out)) (one.joins ? coming : busy).push_back(one.of.at);
    // departed_ counts those that have ended well, which are members until the next generation.
    std::vector<member> members;
    for (auto const& one : now_.members)
        if (auto const& its = *find(one); its.ended && !its.failed)
            busy.push_back(one.at);
        else
            members.push_back(one);
    int const most = is_last_generation() ? 0 : wanted_ - departed_;
    auto const change = find_host_change(hosts, members, coming, busy, most, seconds_now());
    auto const holds = [](std::vector<slot> const& all, slot const& at) {
        return std::find(all.begin(), all.end(), at) != all.end();
    };
    for (auto& one : seats_) {
        one.leaves = one.is_member() && holds(change.leave, one.of.at);
        if (one.joins && !one.ended && holds(change.end, one.of.at)) one.unwanted = true, calls_.kill(seat_of(one));
    }
    for (auto const& at : change.start) try {
            calls_.start_at(at);
        } catch (error const& problem) {
            run_.outcome->hosts.note_failure(at, run_.options.cool_down, seconds_now(), draw_chance());
            calls_.say(fmt::format("note: no rank is started on {}: {}", at.host, problem.what()));
        }
    offer_change();
    bool const stay = !change.leave.empty() && !can_leave();
    if (stay && !stay_)
        calls_.say(fmt::format("note: {} of the slots in use {} gone; the ranks there stay until others are there",
                               change.leave.size(), change.leave.size() == 1 ? "is" : "are"));
    stay_ = stay;
}

/// Whether some would be left that stay, and enough of them: as next_generation() has it.
bool member_world::can_leave() const {
    auto const count = [&](auto const& what) {
        return static_cast<std::size_t>(std::count_if(seats_.begin(), seats_.end(), what));
    };
    auto const leaving = count([](seat const& one) { return one.is_member() && one.leaves; });
    auto const staying = living() - leaving;
    auto const come = std::min(room(), count([&](seat const& one) { return can_come_in(one); }));
    if (leaving == 0 || staying + come == 0 || (staying == 0 && leaving == 1)) return false;
    return staying + come + leaving - 1 >= static_cast<std::size_t>(least());
}

/// It ends by itself once it hears of it.
void member_world::part_with(seat& one, generation const& then) {
    one.out = true;
    dismiss(one, then);
    loop_.after(run_.options.grace, [this, number = seat_of(one)] {
        if (!closed_ && !seats_[static_cast<std::size_t>(number)].ended) calls_.kill(number);
    });
}

/// Of a run whose hosts come and go: else newcomers would be started there at once.
void member_world::cool_failed_slots() const {
    if (!run_.options.discovery.given() || run_.outcome == nullptr) return;
    auto& hosts = run_.outcome->hosts;
    std::set<std::string> lost_now;
    for (auto const& one : now_.members) {
        if (!find(one)->failed) continue;
        if (!find(one)->with_host)
            hosts.note_failure(one.at, run_.options.cool_down, seconds_now(), draw_chance());
        else if (lost_now.insert(one.at.host).second)
            hosts.note_lost(one.at.host, cool_down_of_hosts(run_.options), seconds_now(), draw_chance());
    }
}

}  // namespace muster
