#include "launch/run/members/member_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/run/gather_hosts.hpp"
#include "launch/system/network.hpp"
#include "pmix/library/random_bits.hpp"

namespace muster {

namespace {

/// Between two looks at members that others wait for.
constexpr duration look_every{0.5};
/// One that runs, and computes on without the others, has so long.
constexpr duration late_after{540};
/// A process that has been started on a slot that has come has so long to import what it needs.
constexpr duration newcomer_limit{600};
/// Those that are ready wait for each other so long: the world is to be made again once.
constexpr duration together_within{10};
/// Where each is among the members of its host, in their order.
void seat_on_hosts(std::vector<identity*> const& ranks) {
    std::vector<std::string> hosts;
    std::vector<int> counts;
    for (auto* one : ranks) {
        auto const at = static_cast<std::size_t>(std::find(hosts.begin(), hosts.end(), one->host) - hosts.begin());
        if (at == hosts.size()) hosts.push_back(one->host), counts.push_back(0);
        one->node_rank = static_cast<int>(at);
        one->local_rank = counts[at]++;
    }
    for (auto* one : ranks) {
        one->local_size = counts[static_cast<std::size_t>(one->node_rank)];
        one->node_count = static_cast<int>(hosts.size());
    }
}

}  // namespace

member_world::member_world(event_loop& loop, run_context const& run, std::vector<place> ranks, group calls)
    : loop_(loop),
      run_(run),
      calls_(std::move(calls)),
      now_(run.present()),
      wanted_(run.options.discovery.given() ? most_members(run.options, run.life) : static_cast<int>(ranks.size())),
      spares_(run.options.waiting_spares() > 0 ? 0 : run.options.spares) {
    // Of a run that grows all tell where they listen, except where they and those that come are on this node.
    over_nodes_ = run.options.discovery.given() && !ranks.empty() && !ranks.front().address.empty();
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        over_nodes_ = over_nodes_ || ranks[r].who.node_count > 1;
        seats_.push_back({.who = std::move(ranks[r].who), .node_address = std::move(ranks[r].address), .of = now_.members.at(r)});
    }
    if (over_nodes_) wanted_ = std::min(wanted_, static_cast<int>(elastic::most_over_nodes));
}

void member_world::add_spare(place what, slot at) {
    over_nodes_ = over_nodes_ || what.who.host != seats_.front().who.host;
    seats_.push_back(
        {.who = std::move(what.who), .node_address = std::move(what.address), .of = {-1, std::move(at)}, .joins = true});
}

void member_world::add_newcomer(place what, slot at) {
    add_spare(std::move(what), std::move(at));
    auto const limit = run_.options.start_timeout.value_or(newcomer_limit);
    loop_.after(limit, [this, number = static_cast<int>(seats_.size()) - 1, limit] {
        auto const& one = seats_[static_cast<std::size_t>(number)];
        if (closed_ || !one.joins || one.ready || one.ended) return;
        calls_.say(
            fmt::format("note: the rank that was started on {} has not come to init() within {} (--start-timeout): killing it",
                        one.of.at.host, format_duration(limit)));
        calls_.kill(number);
    });
}

void member_world::place_newcomer(int number, place const& what) {
    auto& one = seats_.at(static_cast<std::size_t>(number));
    one.who.host = what.who.host;
    one.node_address = what.address;
}

void member_world::close() noexcept {
    if (asked_) loop_.cancel(look_);
    asked_.reset();
    if (!std::exchange(closed_, true)) dismiss_spares();
}

void member_world::dismiss_spares() const noexcept try {
    for (auto const& one : seats_)
        if (can_come_in(one)) dismiss(one, now_);
} catch (std::exception const&) {  // they have the signal
}

// ------------------------------------------------------------------------------------------------ messages

void member_world::take(int number, std::string_view packet) {
    auto& from = seats_.at(static_cast<std::size_t>(number));
    if (closed_) return;
    try {
        take(from, elastic::decode(packet));
    } catch (error const& fault) {
        spdlog::warn("rank {} on {}: {}", from.who.rank, from.who.host, fault.what());
    }
}

/// It has no part in it.
void member_world::dismiss(seat const& one, generation const& then) const {
    elastic::generation word{.number = then.number};
    for (auto const& each : then.members) word.members.push_back(each.number);
    word.who = one.who;
    word.who.rank = -1;
    word.who.local_rank = word.who.node_rank = 0;  // whatever it had is another's
    word.who.world_size = static_cast<int>(word.members.size());
    send(one, word);
}

void member_world::take(seat& from, elastic::message const& what) {
    if (from.ended || from.out) return;
    if (auto const* const hello = std::get_if<elastic::hello>(&what)) {
        from.address = hello->address;
        if (from.joins) return welcome(from);
        return answer(from);
    }
    if (std::holds_alternative<elastic::announce>(what)) {
        bool const first = !anyone_announced();
        from.announced = true;
        if (first) calls_.look_at_hosts();
    }
    auto const* const asked = std::get_if<elastic::reform>(&what);
    if (asked == nullptr || from.joins) return;
    if (asked->after < now_.number) return tell_generation({&from});
    from.wants = true;
    from.of.has_state = asked->has_state;
    from.at_commit = asked->at_commit;
    from.port = asked->port;
    if (!from.at_commit) tell(from.who, "left its world after a failure");
    if (!asked_) {
        asked_ = event_loop::clock::now();
        look_ = loop_.after(look_every, [this] { look_after_late(); });
    }
    decide();
}

/// Perhaps another program of the rank. Over several nodes all have to tell where they listen first.
void member_world::answer(seat& from) {
    from.announced = from.wants = false;
    from.asks = true;
    auto const waits = [](seat const& one) { return one.is_member() && !one.asks; };
    if (over_nodes_ && std::any_of(seats_.begin(), seats_.end(), waits)) return;
    std::vector<seat*> asking;
    for (auto& one : seats_)
        if (std::exchange(one.asks, false)) asking.push_back(&one);
    tell_generation(asking);
}

void member_world::send(seat const& to, elastic::message const& what) const {
    calls_.send(seat_of(to), elastic::encode(what));
}

void member_world::tell_generation(std::vector<seat*> const& whom) const {
    elastic::generation word{.number = now_.number, .sync = sync_};
    for (auto const& one : now_.members) {
        word.members.push_back(one.number);
        auto const& its = *find(one);
        if (over_nodes_) word.addresses.push_back(its.address);
        if (word.members.size() > 1 || now_.number == first_) continue;
        word.master = its.node_address;
        word.master_port = its.port;
    }
    for (auto* one : whom) {
        word.who = one->who;
        send(*one, word);
    }
}

// ------------------------------------------------------------------------------------------------ who is lost

std::size_t member_world::living() const {
    return static_cast<std::size_t>(std::count_if(seats_.begin(), seats_.end(), [](seat const& one) { return one.is_member(); }));
}

/// The places of lost ranks that nobody has.
std::size_t member_world::room() const {
    auto const leaving =
        std::count_if(seats_.begin(), seats_.end(), [](seat const& one) { return one.is_member() && one.leaves; });
    auto const taken = living() - static_cast<std::size_t>(leaving) + static_cast<std::size_t>(departed_);
    return static_cast<std::size_t>(wanted_) - std::min(taken, static_cast<std::size_t>(wanted_));
}

bool member_world::can_come_in(seat const& one) const {
    return one.joins && one.ready && !one.ended;
}

int member_world::seat_of(seat const& one) const {
    auto const found = std::find_if(seats_.begin(), seats_.end(), [&](seat const& other) { return &other == &one; });
    return static_cast<int>(found - seats_.begin());
}

bool member_world::anyone_announced() const {
    return std::any_of(seats_.begin(), seats_.end(), [](seat const& one) { return one.announced; });
}

int member_world::least() const {
    return run_.options.least_ranks.value_or(static_cast<int>(run_.life.now.members.size()));
}

void member_world::note_end(int number, bool well, std::string const& why, bool with_host) {
    auto& one = seats_.at(static_cast<std::size_t>(number));
    if (std::exchange(one.ended, true)) return;
    if (one.joins) offer_change();  // others may have waited for it
    if (one.joins || one.out) return;
    if (well) {
        ++departed_;
        return after_departure();
    }
    one.failed = true;
    one.with_host = with_host;
    lost_.push_back(number);
    anyone_lost_ = unjudged_ = true;
    untold_.push_back(one.who.rank);
    untold_why_ += (untold_why_.empty() ? "" : "; ") + why;
}

/// The others may wait for it.
void member_world::after_departure() {
    auto const asking = std::find_if(seats_.begin(), seats_.end(), [](seat const& other) { return other.asks && !other.ended; });
    if (asking != seats_.end()) answer(*asking);
    decide();
}

void member_world::tell_lost() {
    if (untold_.empty()) return;
    elastic::lost const word{now_.number, std::exchange(untold_, {}), std::exchange(untold_why_, {})};
    if (!anyone_announced()) return;  // they end, and need not complain
    for (auto& one : seats_)
        if (one.is_member()) send(one, word);
}

/// A member has left, and lives: what the others wait for does not come either.
void member_world::tell(identity const& who, std::string_view what) {
    if (std::exchange(left_, true)) return;
    elastic::lost const word{now_.number, {}, fmt::format("rank {} on {} {}", who.rank, who.host, what)};
    for (auto& one : seats_)
        if (one.is_member() && !one.wants) send(one, word);
}

bool member_world::can_go_on(std::string& why_not) const {
    auto const waiting = static_cast<std::size_t>(
        std::count_if(seats_.begin(), seats_.end(), [this](seat const& one) { return can_come_in(one); }));
    auto const left = static_cast<int>(living() + std::min(waiting, room()));
    why_not.clear();
    if (!anyone_announced() && run_.options.least_ranks && run_.options.restarts.most == 0)
        why_not = "--min-np: no rank had begun elastic.run, so this failure ends the run; --max-restarts N starts it again";
    if (!anyone_announced()) return false;
    if (living() == 0 && waiting > 0)
        why_not = "the others cannot go on in place: spares are left alone, and these have no state";
    if (living() == 0) return false;
    if (is_last_generation()) why_not = fmt::format("the others cannot go on in place: {}", no_further_reset());
    if (is_last_generation()) return false;
    if (left >= least()) return true;
    auto const& options = run_.options;
    if (options.least_ranks || options.discovery.given() || options.warm_spares > 0)  // else going on in place was not asked for
        why_not = fmt::format("the others cannot go on in place: {} left, {} needed{}", count_of_ranks(living()), least(),
                              options.least_ranks || options.discovery.given() ? " (--min-np)" : "");
    if (options.restarts.most > 0 && !options.keep_state)
        why_not +=
            fmt::format("{}what the ranks have committed is lost (--keep-state node holds it)", why_not.empty() ? "" : "; ");
    return false;
}

void member_world::go_on() {
    loop_.after(duration(0), [this] {
        unjudged_ = false;
        if (std::string why_not; !closed_ && can_go_on(why_not)) decide();
    });
}

/// All others wait for a member that does not come, or that has asked for the next generation and is stopped since. It may use what it shares with them when it
/// goes on later, so it has to end first.
void member_world::look_after_late() {
    look_ = loop_.after(look_every, [this] { look_after_late(); });
    bool const late = event_loop::clock::now() - *asked_ > std::chrono::duration_cast<event_loop::clock::duration>(late_after);
    for (auto& one : seats_) {
        if (!one.is_member()) continue;
        bool const was_stopped = std::exchange(one.stopped, calls_.is_stopped(seat_of(one)));
        if (!(late && !one.wants) && !(one.stopped && was_stopped)) continue;
        calls_.say(fmt::format("note: rank {} on {} (member {}) {}, and the others go on without it: killing it", one.who.rank,
                               one.who.host, one.of.number,
                               one.stopped ? "is stopped" : fmt::format("has not come for {}", format_duration(late_after))));
        one.wants = false;  // nobody begins with it while it ends
        calls_.kill(seat_of(one));
    }
    decide();  // one that was stopped may run again
}

// ------------------------------------------------------------------------------------------------ the next generation

/// Newcomers have a slot before they have a number.
member_world::seat* member_world::find(member const& one) {
    return const_cast<seat*>(std::as_const(*this).find(one));
}

member_world::seat const* member_world::find(member const& one) const {
    auto const found = std::find_if(seats_.begin(), seats_.end(), [&](seat const& each) {
        return each.joins ? each.ready && !each.ended && each.of.at == one.at : each.of.number == one.number;
    });
    return found == seats_.end() ? nullptr : &*found;
}

/// When all that are left want it.
void member_world::decide() {
    if (!asked_ || living() == 0) return;
    if (std::any_of(seats_.begin(), seats_.end(),
                    [this](seat const& one) { return one.is_member() && (!one.wants || calls_.is_stopped(seat_of(one))); }))
        return;
    generation_events events;
    events.at_commit = !anyone_lost_ && !left_;
    std::vector<slot> pool;
    for (auto& one : now_.members) {
        auto const& its = *find(one);
        one.has_state = its.of.has_state;
        if (its.ended)
            events.ended.push_back(one.number);
        else
            (its.leaves ? events.leaving : pool).push_back(one.at);
    }
    auto free = room();
    for (auto const& one : seats_)  // a stopped one would keep the others waiting
        if (free > 0 && can_come_in(one) && !calls_.is_stopped(seat_of(one))) pool.push_back(one.of.at), --free;
    generation_wishes const wishes{.least = least(), .most = wanted_};
    auto choice = next_generation(pool, now_, wishes, events);
    if (choice.next == generation_choice::step::wait && unjudged_) return;  // whoever judges the loss ends the run
    if (choice.next == generation_choice::step::wait) return calls_.give_up(choice.why);
    if (choice.next == generation_choice::step::keep) {
        choice.then = now_;
        ++choice.then.number;
        choice.why = left_ ? "a collective failed, and no rank is gone" : "no rank is gone";
    }
    if (is_last_generation()) return calls_.give_up(no_further_reset());
    begin(std::move(choice.then), choice.why);
}

void member_world::begin(generation then, std::string const& why) {
    asked_.reset();
    loop_.cancel(look_);
    std::vector<int> seats;
    bool anyone_joins = false;
    for (auto const& one : then.members) {
        auto& its = *find(one);
        if (std::exchange(its.joins, false)) anyone_joins = true, its.of.number = one.number;
        seats.push_back(seat_of(its));
    }
    sync_ = anyone_joins || anyone_lost_ ||
            std::any_of(seats.begin(), seats.end(), [&](int s) { return !seats_[static_cast<std::size_t>(s)].at_commit; });
    anyone_lost_ = left_ = false;
    cool_failed_slots();
    for (auto& one : seats_)
        if (one.is_member() && std::find(seats.begin(), seats.end(), seat_of(one)) == seats.end()) part_with(one, then);
    auto const nspace = pmix::make_job_name(short_host_name());
    now_ = std::move(then);
    std::vector<identity*> ranks;
    std::vector<seat*> all;
    for (int const number : seats) {
        auto& one = *all.emplace_back(&seats_[static_cast<std::size_t>(number)]);
        one.who.nspace = nspace;
        one.who.rank = static_cast<int>(ranks.size());
        one.who.world_size = static_cast<int>(seats.size());
        one.wants = one.stopped = false;
        ranks.push_back(&one.who);
    }
    seat_on_hosts(ranks);
    tell_generation(all);
    calls_.begin(now_, seats, why);
    offer_soon();
    replace_lost();
    calls_.look_at_hosts();
}

/// Once those that are left train again.
void member_world::replace_lost() {
    for (; spares_ > 0 && !lost_.empty(); --spares_) {
        int const in_place_of = lost_.front();
        lost_.erase(lost_.begin());
        auto const& gone = seats_[static_cast<std::size_t>(in_place_of)];
        try {
            calls_.start(in_place_of);
        } catch (error const& problem) {
            calls_.say(fmt::format("note: no rank takes the place of {}: {}",
                                   name_of_rank(gone.who.rank, gone.who.host, -1, {}, gone.of.number), problem.what()));
            continue;
        }
        add_spare({gone.who, gone.node_address}, gone.of.at);
    }
}

/// It waits for its first generation, which begins at the others' next commit where one of them is lost already, else when one is.
void member_world::welcome(seat& newcomer) {
    newcomer.ready = true;
    calls_.waits(seat_of(newcomer));
    calls_.look_at_hosts();  // its slot may be gone by now
    offer_soon();
}

/// Others have been started with those that wait.
bool member_world::awaits_newcomers() const {
    auto const comes = [](seat const& one) { return one.joins && !one.ready && !one.ended; };
    return run_.options.discovery.given() && std::any_of(seats_.begin(), seats_.end(), comes);
}

/// Those that come with others wait for these, but not for ever.
void member_world::offer_soon() {
    offer_change();
    if (awaits_newcomers()) loop_.after(together_within, [this] { offer_change(true); });
}

/// Members forget at each generation what they heard of before.
void member_world::offer_change(bool at_once) {
    if (closed_) return;
    auto const comes = [&](seat const& one) { return can_come_in(one) && !calls_.is_stopped(seat_of(one)); };
    bool const grows = room() > 0 && (at_once || !awaits_newcomers()) && !is_last_generation() &&
                       std::any_of(seats_.begin(), seats_.end(), comes);
    elastic::hosts_changed const word{.added = grows, .removed = can_leave()};
    if (!word.added && !word.removed) return;
    for (auto& one : seats_)
        if (one.is_member()) send(one, word);
}

bool member_world::is_last_generation() const {
    auto const& most = run_.options.restarts.resets;
    return most && now_.number >= *most;
}

std::string member_world::no_further_reset() const {
    return fmt::format("this was generation {}, the last one that --reset-limit {} allows", now_.number,
                       *run_.options.restarts.resets);
}

}  // namespace muster
