#include "small_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "comm/membership/member_view.hpp"
#include "launch/elastic/membership.hpp"

namespace muster::simulation {

namespace {

namespace act = membership::act;
namespace happened = membership::happened;
using membership::member_event;
using membership::phase;

/// Without time: whatever can happen, may happen next.
struct rank_process {
    enum class doing { starts, greets, works, waits, ended } now = doing::starts;
    member_view view = {};
    std::deque<elastic::message> up = {}, down = {};
    member_event how = member_event::fails;  ///< it has ended
    bool stopped = false, killed = false, end_known = false;
    bool lives() const { return now != doing::ended; }
};

struct small_run {
    membership::world launcher;
    std::vector<rank_process> ranks;
    int faults = 0;
    bool looks = false;  ///< a timer for that is set
    bool to_judge = false;
    std::vector<std::vector<int>> lists = {};  ///< of members, by generation
    std::string broken = {};
    bool is_closed() const { return launcher.at == phase::closed; }
};

void feed(small_run& run, decltype(membership::event::what) what) {
    for (auto& one : run.launcher.seats)  // a look that comes later comes much later
        if (one.stopped_since_s >= 0) one.stopped_since_s = 0;
    if (run.launcher.asked_s) run.launcher.asked_s = 0;
    bool const was_closed = run.is_closed();
    for (auto const& deed : membership::step(run.launcher, {1, std::move(what)})) {
        if (was_closed) run.broken = "the run has ended, and the launcher still acts";
        if (auto const* const send = std::get_if<act::send>(&deed)) {
            auto& to = run.ranks[static_cast<std::size_t>(send->to)];
            if (to.lives()) to.down.push_back(send->what);
        } else if (auto const* const kill = std::get_if<act::kill>(&deed)) {
            run.ranks[static_cast<std::size_t>(kill->whom)].killed = true;
        } else if (auto const* const look = std::get_if<act::look>(&deed)) {
            std::vector<int> stopped;
            for (int const seat : look->at)
                if (run.ranks[static_cast<std::size_t>(seat)].lives() && run.ranks[static_cast<std::size_t>(seat)].stopped)
                    stopped.push_back(seat);
            feed(run, happened::look{look->what, look->at, std::move(stopped), "n"});
        } else if (std::holds_alternative<act::set_timer>(deed)) {
            run.looks = true;
        } else if (std::holds_alternative<act::cancel_look>(deed)) {
            run.looks = false;
        } else if (auto const* const begin = std::get_if<act::begin>(&deed)) {
            auto& list = run.lists.emplace_back();
            for (auto const& one : begin->now.members) list.push_back(one.number);
            for (int const seat : begin->seats)
                if (run.ranks[static_cast<std::size_t>(seat)].lives() && run.ranks[static_cast<std::size_t>(seat)].stopped)
                    run.broken = "a generation begins with a stopped member";
        } else if (std::holds_alternative<act::give_up>(deed)) {
            for (auto const& one : run.launcher.seats)
                if (membership::is_member(one.state)) run.broken = "it gives up, and a member is left";
        }
    }
}

void read(small_run& run, rank_process& one) {
    auto const word = one.down.front();
    one.down.pop_front();
    if (!one.view.now && !std::holds_alternative<elastic::generation>(word)) return;
    auto const news = take(one.view, word);
    if (!news || !news->is_over) return;
    auto const number = static_cast<std::size_t>(one.view.now->number);
    if (number >= run.lists.size() || run.lists[number] != one.view.now->members)
        run.broken = "a rank hears of another list of members";
    if (one.now == rank_process::doing::greets) one.up.push_back(elastic::announce{});
    one.now = rank_process::doing::works;
}

/// Somebody whom it meets in its generation is not there.
bool misses_one(small_run const& run, rank_process const& one) {
    if (is_broken(one.view, one.view.now->number)) return true;
    for (int const member : one.view.now->members) {
        auto const& other = run.ranks[static_cast<std::size_t>(member)];
        if (!other.lives() || other.stopped ||
            (other.view.now && other.view.now->number == one.view.now->number && other.now == rank_process::doing::waits))
            return true;
    }
    return false;
}

/// What may happen next; `faults`: with those.
std::vector<small_run> successors(small_run const& from, bool faults) {
    using doing = rank_process::doing;
    std::vector<small_run> next;
    auto const add = [&](auto const& what) { what(next.emplace_back(from)); };
    for (std::size_t i = 0; i < from.ranks.size(); ++i) {
        auto const& one = from.ranks[i];
        auto const seat = static_cast<int>(i);
        if (!one.up.empty())
            add([&](small_run& run) {
                auto word = run.ranks[i].up.front();
                run.ranks[i].up.pop_front();
                feed(run, happened::message{seat, std::move(word)});
            });
        if (!one.lives() && !one.end_known && !from.is_closed() && one.up.empty())
            add([&](small_run& run) {
                run.ranks[i].end_known = true;
                feed(run, happened::end{seat, one.how, "it is gone"});
                if (one.how == member_event::fails) feed(run, happened::losses_known{}), run.to_judge = true;
                bool left = false;
                for (auto const& each : run.launcher.seats) left = left || membership::is_member(each.state);
                if (!left) feed(run, happened::closing{});
            });
        if (!one.lives()) continue;
        auto const end = [&](small_run& run, member_event how) {
            auto& its = run.ranks[i];
            its.now = doing::ended;
            its.how = how;
            its.view = {};
            its.down.clear();
            its.stopped = its.killed = false;
        };
        if (one.killed) add([&](small_run& run) { end(run, member_event::fails); });
        if (faults && from.faults > 0) {
            add([&](small_run& run) { --run.faults, end(run, member_event::fails); });
            if (!one.stopped) add([&](small_run& run) { --run.faults, run.ranks[i].stopped = true; });
            if (!one.stopped && one.now == doing::works)
                add([&](small_run& run) { --run.faults, end(run, member_event::ends_well); });
        }
        if (one.stopped) {
            if (faults && from.faults > 0) add([&](small_run& run) { --run.faults, run.ranks[i].stopped = false; });
            continue;
        }
        if (one.now == doing::starts)
            add([&](small_run& run) { run.ranks[i].now = doing::greets, run.ranks[i].up.push_back(elastic::hello{"a"}); });
        if (!one.down.empty() && one.now != doing::starts) add([&](small_run& run) { read(run, run.ranks[i]); });
        if (one.now == doing::works && misses_one(from, one))
            add([&](small_run& run) {
                run.ranks[i].now = doing::waits;
                run.ranks[i].up.push_back(elastic::reform{one.view.now->number, true, false, 0});
            });
    }
    if (from.looks) add([&](small_run& run) { run.looks = false, feed(run, happened::timer_fired{membership::timer::look}); });
    if (from.to_judge && !from.is_closed())
        add([&](small_run& run) {
            run.to_judge = false;
            std::string why_not;
            feed(run, happened::loss_judged{});
            if (!membership::can_go_on(run.launcher, why_not)) feed(run, happened::closing{});
        });
    return next;
}

std::string key_of(small_run const& run) {
    std::string key;
    auto const put = [&](auto value) { key += static_cast<char>(static_cast<int>(value) + 33); };
    put(run.launcher.at), put(run.faults), put(run.looks), put(run.to_judge), put(run.launcher.sync), put(run.launcher.departed);
    put(run.launcher.broken.by_loss), put(run.launcher.broken.by_failure), put(run.launcher.broken.unjudged),
        put(run.launcher.now.number);
    for (int const rank : run.launcher.news.ranks) put(rank);
    for (auto const& one : run.launcher.now.members) put(one.number);
    for (auto const& one : run.launcher.seats)
        put(one.state), put(one.stopped_since_s >= 0), put(one.announced), put(one.who.rank), put(one.asked.has_state);
    for (auto const& one : run.ranks) {
        put(one.now), put(one.how), put(one.stopped), put(one.killed), put(one.end_known),
            put(one.view.now ? one.view.now->number : -1);
        put(one.view.lost.has_value());
        for (auto const* queue : {&one.up, &one.down}) {
            put(queue->size());
            for (auto const& word : *queue) {
                put(word.index());
                if (auto const* const asked = std::get_if<elastic::reform>(&word)) put(asked->after);
                if (auto const* const lost = std::get_if<elastic::lost>(&word)) put(lost->generation);
                if (auto const* const begun = std::get_if<elastic::generation>(&word)) put(begun->number);
            }
        }
    }
    return key;
}

/// Nothing but faults can happen.
std::string check_rest(small_run const& run) {
    if (run.is_closed()) return {};
    bool runs = false;
    for (auto const& one : run.ranks) runs = runs || (one.lives() && !one.stopped);
    if (!runs && run.launcher.at == phase::running) return {};  // nobody is missed
    for (std::size_t i = 0; i < run.ranks.size(); ++i) {
        auto const& one = run.ranks[i];
        if (!one.lives() || (one.stopped && run.launcher.at == phase::running)) continue;
        if (one.now != rank_process::doing::works || one.view.now->number != run.launcher.now.number)
            return fmt::format("rank {} does not go on", i);
    }
    return {};
}

}  // namespace

std::string find_in_small_world(int ranks, int faults, bool over_nodes, std::size_t& states) {
    small_run first{.faults = faults};
    auto& state = first.launcher;
    state.now.born = state.most = ranks;
    state.over_nodes = over_nodes;
    first.lists.emplace_back();
    for (int rank = 0; rank < ranks; ++rank) {
        state.now.members.push_back({rank, {"h", rank}});
        state.seats.push_back({.who = {"n", rank, ranks, rank, ranks, 0, 1, "h"}, .of = state.now.members.back()});
        first.lists.back().push_back(rank);
    }
    first.ranks.resize(static_cast<std::size_t>(ranks));
    std::unordered_set<std::string> seen{key_of(first)};
    std::vector<small_run> open{first};
    while (!open.empty()) {
        auto const now = std::move(open.back());
        open.pop_back();
        auto const own = key_of(now);
        bool at_rest = true;
        for (auto& next : successors(now, true)) {
            if (!next.broken.empty()) return next.broken;
            auto key = key_of(next);
            at_rest = at_rest && (next.faults < now.faults || key == own);
            if (seen.insert(std::move(key)).second) open.push_back(std::move(next));
        }
        if (auto why = at_rest ? check_rest(now) : std::string(); !why.empty()) return why;
        if (now.launcher.now.number > 4 * (faults + 1)) return "generations without end";
    }
    states = seen.size();
    return {};
}

int run_small_world(int ranks, int faults) {
    std::size_t all = 0;
    for (bool const over_nodes : {false, true}) {
        std::size_t states = 0;
        if (auto const why = find_in_small_world(ranks, faults, over_nodes, states); !why.empty()) {
            fmt::print("BROKEN: {}\n", why);
            return 1;
        }
        fmt::print("{} ranks, {} faults, {}: {} states; all invariants hold\n", ranks, faults,
                   over_nodes ? "over nodes" : "on one node", states);
        all += states;
    }
    fmt::print("{} states\n", all);
    return 0;
}

}  // namespace muster::simulation
