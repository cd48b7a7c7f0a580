#include "launch/run/members/member_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/run/gather_hosts.hpp"
#include "launch/system/network.hpp"
#include "pmix/library/random_bits.hpp"

namespace muster {

namespace act = membership::act;
namespace happened = membership::happened;

member_world::member_world(event_loop& loop, run_context const& run, std::vector<place> ranks, group calls)
    : loop_(loop), run_(run), calls_(std::move(calls)) {
    auto const& options = run.options;
    state_.by = rules();
    state_.now = run.present();
    state_.first = state_.now.number;
    state_.most = options.discovery.given() ? most_members(options, run.life) : static_cast<int>(ranks.size());
    state_.spares = options.waiting_spares() > 0 ? 0 : options.spares;
    // The ranks of a run that can grow all announce where they listen, unless they and all newcomers are on this node.
    state_.over_nodes = options.discovery.given() && !ranks.empty() && !ranks.front().address.empty();
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        state_.over_nodes = state_.over_nodes || ranks[r].who.node_count > 1;
        state_.seats.push_back(
            {.who = std::move(ranks[r].who), .node_address = std::move(ranks[r].address), .of = state_.now.members.at(r)});
    }
    if (state_.over_nodes) state_.most = std::min(state_.most, static_cast<int>(elastic::most_over_nodes));
}

membership::rules member_world::rules() const {
    auto const& options = run_.options;
    constexpr duration newcomer_limit{600};
    return {.least = options.least_ranks.value_or(static_cast<int>(run_.life.now.members.size())),
            .resets = options.restarts.resets,
            .restarts = options.restarts.most,
            .warm_spares = options.warm_spares ? options.spares : 0,
            .newcomer_limit_s = options.start_timeout.value_or(newcomer_limit).count(),
            .grace_s = options.grace.count(),
            .by_hosts = options.discovery.given(),
            .says_least = options.least_ranks.has_value(),
            .keeps_state = options.keep_state};
}

// ------------------------------------------------------------------------------------------------ what happens

membership::event member_world::at_present(decltype(membership::event::what) what) const {
    return {std::chrono::duration<double>(event_loop::clock::now().time_since_epoch()).count(), std::move(what)};
}

/// Handles what an action causes after all actions of its step.
void member_world::feed(decltype(membership::event::what) what) {
    events_.push_back(at_present(std::move(what)));
    if (std::exchange(stepping_, true)) return;
    struct done {
        bool& stepping;
        ~done() { stepping = false; }
    } const at_end{stepping_};
    while (!events_.empty()) {
        auto const next = std::move(events_.front());
        events_.pop_front();
        step(next);
    }
}

void member_world::step(membership::event const& what) {
    state_.by = rules();
    for (auto const& one : membership::step(state_, what)) std::visit([this](auto const& deed) { act(deed); }, one);
}

void member_world::add_spare(place what, slot at) {
    feed(happened::addition{std::move(what.who), std::move(what.address), std::move(at)});
}

void member_world::add_newcomer(place what, slot at) {
    feed(happened::addition{std::move(what.who), std::move(what.address), std::move(at), true});
}

void member_world::place_newcomer(int seat, place const& what) {
    feed(happened::placement{seat, what.who.host, what.address});
}

/// Uses the clock of cool-downs.
void member_world::take_hosts(host_pool const& hosts) {
    feed(happened::hosts{hosts, seconds_now()});
}

void member_world::take(int seat, std::string_view packet) try {
    feed(happened::message{seat, elastic::decode(packet)});
} catch (error const& fault) {
    auto const& who = state_.seats.at(static_cast<std::size_t>(seat)).who;
    spdlog::warn("rank {} on {}: {}", who.rank, who.host, fault.what());
}

void member_world::note_end(int seat, bool well, std::string const& why, bool with_host) {
    using enum membership::member_event;
    feed(happened::end{seat, well ? ends_well : with_host ? is_lost_with_host : fails, why});
}

void member_world::tell_lost() {
    feed(happened::losses_known{});
}

bool member_world::can_go_on(std::string& why_not) const {
    auto asked = state_;
    asked.by = rules();
    return membership::can_go_on(asked, why_not);
}

void member_world::go_on() {
    loop_.after(duration(0), [this] { feed(happened::loss_judged{}); });
}

/// Acts at once, even within an action, because the connections are closed next.
void member_world::close() noexcept try { step(at_present(happened::closing{})); } catch (std::exception const&) {
    // the ranks have the signal
}

// ------------------------------------------------------------------------------------------------ deeds

void member_world::act(act::send const& what) {
    calls_.send(what.to, elastic::encode(what.what));
}

void member_world::act(act::kill const& what) {
    calls_.kill(what.whom);
}

void member_world::act(act::say const& what) {
    calls_.say(what.line);
}

void member_world::act(act::begin const& what) {
    calls_.begin(what.now, what.seats, what.why);
}

void member_world::act(act::start_in_place_of const& what) {
    auto const& gone = state_.seats.at(static_cast<std::size_t>(what.seat));
    try {
        calls_.start(what.seat);
    } catch (error const& problem) {
        return calls_.say(fmt::format("note: no rank takes the place of {}: {}",
                                      name_of_rank(gone.who.rank, gone.who.host, -1, {}, gone.of.number), problem.what()));
    }
    add_spare({gone.who, gone.node_address}, gone.of.at);
}

void member_world::act(act::start_at const& what) try { calls_.start_at(what.at); } catch (error const& problem) {
    run_.outcome.hosts.note_failure(what.at, run_.options.cool_down, seconds_now(), draw_chance());
    calls_.say(fmt::format("note: no rank is started on {}: {}", what.at.host, problem.what()));
}

void member_world::act(act::look_at_hosts const&) {
    calls_.look_at_hosts();
}

void member_world::act(act::tell_that_it_waits const& what) {
    calls_.waits(what.seat);
}

void member_world::act(act::look const& what) {
    calls_.look(what.at, [this, what](std::vector<int> const& stopped) {
        feed(happened::look{what.what, what.at, stopped, pmix::make_job_name(short_host_name())});
    });
}

void member_world::act(act::set_timer const& what) {
    auto const set = loop_.after(duration(what.after_s), [this, what] { feed(happened::timer_fired{what.which, what.seat}); });
    if (what.which == membership::timer::look) look_ = set;
}

void member_world::act(act::cancel_look const&) {
    loop_.cancel(look_);
}

void member_world::act(act::cool_down const& what) {
    auto& hosts = run_.outcome.hosts;
    if (what.whole_host)
        hosts.note_lost(what.at.host, cool_down_of_hosts(run_.options), seconds_now(), draw_chance());
    else
        hosts.note_failure(what.at, run_.options.cool_down, seconds_now(), draw_chance());
}

void member_world::act(act::give_up const& what) {
    calls_.give_up(what.why);
}

}  // namespace muster
