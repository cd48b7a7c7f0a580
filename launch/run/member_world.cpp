#include "launch/run/member_world.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/network.hpp"
#include "pmix/library/random_bits.hpp"

namespace muster {

namespace {

/// Between two looks at members that others wait for.
constexpr duration look_every{0.5};
/// One that runs, and computes on without the others, has so long.
constexpr duration late_after{540};
/// Scripts use low numbers for files of their own.
constexpr int least_descriptor = 64;

std::pair<unique_fd, unique_fd> make_sockets() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        throw_system("socketpair", "for a rank of an elastic run");
    unique_fd ours(ends[0]), theirs(ends[1]);
    if (int const high = ::fcntl(theirs.get(), F_DUPFD_CLOEXEC, least_descriptor); high >= 0) theirs.reset(high);
    return {std::move(ours), std::move(theirs)};
}

/// None: programs that meet there find the old one in use.
int find_port() {
    try {
        return held_ports(1).numbers().front();
    } catch (error const&) {
        return 0;
    }
}

}  // namespace

member_world::member_world(event_loop& loop, run_context const& run, std::vector<identity> ranks, group calls)
    : loop_(loop),
      run_(run),
      calls_(std::move(calls)),
      now_(run.present()),
      wanted_(static_cast<int>(ranks.size())),
      spares_(run.options.spares) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        auto [ours, theirs] = make_sockets();
        seats_.push_back({std::move(ours), std::move(theirs), std::move(ranks[r]), now_.members.at(r)});
    }
}

void member_world::start() {
    for (auto& one : seats_) {
        one.theirs.reset();
        loop_.watch_readable(one.ours.get(), [this, &one] { on_readable(one); });
    }
}

void member_world::close() noexcept {
    if (asked_) loop_.cancel(look_);
    asked_.reset();
    for (auto& one : seats_) {
        if (one.ours) loop_.unwatch(one.ours.get());
        one.ours.reset();
    }
}

// ------------------------------------------------------------------------------------------------ messages

void member_world::on_readable(seat& from) {
    std::string packet(elastic::longest_bytes, '\0');
    auto const got = ::recv(from.ours.get(), packet.data(), packet.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {  // nothing of the rank has it any more
        loop_.unwatch(from.ours.get());
        return from.ours.reset();
    }
    packet.resize(static_cast<std::size_t>(got));
    try {
        take(from, elastic::decode(packet));
    } catch (error const& fault) {
        spdlog::warn("rank {} on {}: {}", from.who.rank, from.who.host, fault.what());
    }
}

void member_world::take(seat& from, elastic::message const& what) {
    if (from.ended) return;
    if (std::holds_alternative<elastic::hello>(what)) {
        if (from.joins) return welcome(from);
        from.announced = from.wants = false;  // of another program of the rank
        return send(from, word_for(from));
    }
    if (std::holds_alternative<elastic::announce>(what)) from.announced = true;
    auto const* const asked = std::get_if<elastic::reform>(&what);
    if (asked == nullptr || from.joins) return;
    if (asked->after < now_.number) return send(from, word_for(from));
    from.wants = true;
    from.of.has_state = asked->has_state;
    from.at_commit = asked->at_commit;
    if (!from.at_commit) tell(from.who, "left its world after a failure");
    if (!asked_) {
        asked_ = event_loop::clock::now();
        look_ = loop_.after(look_every, [this] { look_after_late(); });
    }
    decide();
}

void member_world::send(seat& to, elastic::message const& what) const {
    if (!to.ours) return;
    auto const text = elastic::encode(what);
    // One that reads nothing has no use for it.
    static_cast<void>(::send(to.ours.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

elastic::generation member_world::word_for(seat const& of) const {
    elastic::generation word{.number = now_.number, .who = of.who, .sync = sync_, .master_port = port_};
    for (auto const& one : now_.members) word.members.push_back(one.number);
    return word;
}

// ------------------------------------------------------------------------------------------------ who is lost

std::size_t member_world::living() const {
    return static_cast<std::size_t>(std::count_if(seats_.begin(), seats_.end(), [](seat const& one) { return one.is_member(); }));
}

int member_world::seat_of(seat const& one) const {
    auto const found = std::find_if(seats_.begin(), seats_.end(), [&](seat const& other) { return &other == &one; });
    return static_cast<int>(found - seats_.begin());
}

bool member_world::anyone_announced() const {
    return std::any_of(seats_.begin(), seats_.end(), [](seat const& one) { return one.announced; });
}

int member_world::least() const {
    return run_.options.least_ranks.value_or(wanted_);
}

void member_world::note_end(int number, bool well, std::string const& why) {
    auto& one = seats_.at(static_cast<std::size_t>(number));
    if (std::exchange(one.ended, true) || one.joins) return;
    if (well) return decide();
    lost_.push_back(number);
    anyone_lost_ = true;
    untold_.push_back(one.who.rank);
    untold_why_ += (untold_why_.empty() ? "" : "; ") + why;
}

void member_world::tell_lost() {
    if (untold_.empty()) return;
    elastic::lost const word{now_.number, std::exchange(untold_, {}), std::exchange(untold_why_, {})};
    if (!anyone_announced()) return;  // they end, and need not complain
    for (auto& one : seats_)
        if (one.is_member()) send(one, word);
    decide();
}

/// A member has left, and lives: what the others wait for does not come either.
void member_world::tell(identity const& who, std::string_view what) {
    if (std::exchange(left_, true)) return;
    elastic::lost const word{now_.number, {}, fmt::format("rank {} on {} {}", who.rank, who.host, what)};
    for (auto& one : seats_)
        if (one.is_member() && !one.wants) send(one, word);
}

bool member_world::can_go_on(std::string& why_not) const {
    auto const left = static_cast<int>(living());
    why_not.clear();
    if (!anyone_announced() || left == 0) return false;
    if (left < least()) why_not = fmt::format("{} left, and --min-np {} are needed", count_of_ranks(living()), least());
    return left >= least();
}

bool member_world::is_stopped(seat const& one) const {
    auto const leader = calls_.pid(seat_of(one));
    if (muster::is_stopped(leader)) return true;
    auto const below = descendants();
    return std::any_of(below.begin(), below.end(),
                       [&](pid_t pid) { return ::getpgid(pid) == leader && muster::is_stopped(pid); });
}

/// All others wait for a member that does not come. It may use what it shares with them when it goes on later, so it has to end first.
void member_world::look_after_late() {
    look_ = loop_.after(look_every, [this] { look_after_late(); });
    bool const late = event_loop::clock::now() - *asked_ > std::chrono::duration_cast<event_loop::clock::duration>(late_after);
    for (auto& one : seats_) {
        if (!one.is_member() || one.wants) continue;
        bool const was_stopped = std::exchange(one.stopped, is_stopped(one));
        if (!late && !(one.stopped && was_stopped)) continue;
        calls_.say(fmt::format("note: rank {} on {} (member {}) {}, and the others go on without it: killing it", one.who.rank,
                               one.who.host, one.of.number,
                               one.stopped ? "is stopped" : fmt::format("has not come for {}", format_duration(late_after))));
        calls_.kill(seat_of(one));
    }
}

// ------------------------------------------------------------------------------------------------ the next generation

/// Newcomers have a slot before they have a number.
member_world::seat* member_world::find(member const& one) {
    auto const found = std::find_if(seats_.begin(), seats_.end(), [&](seat const& each) {
        return each.joins ? each.ready && !each.ended && each.of.at == one.at : each.of.number == one.number;
    });
    return found == seats_.end() ? nullptr : &*found;
}

/// When all that are left want it.
void member_world::decide() {
    if (!asked_ || living() == 0) return;
    if (std::any_of(seats_.begin(), seats_.end(), [](seat const& one) { return one.is_member() && !one.wants; })) return;
    generation_events events;
    events.at_commit = !anyone_lost_ && !left_;
    std::vector<slot> pool;
    for (auto& one : now_.members) {
        auto const& its = *find(one);
        one.has_state = its.of.has_state;
        if (its.ended)
            events.ended.push_back(one.number);
        else
            pool.push_back(one.at);
    }
    for (auto const& one : seats_)
        if (one.joins && one.ready && !one.ended) pool.push_back(one.of.at);
    generation_wishes const wishes{.least = least(), .most = wanted_};
    auto choice = next_generation(pool, now_, wishes, events);
    if (choice.next == generation_choice::step::wait) return calls_.give_up(choice.why);
    if (choice.next == generation_choice::step::keep) {
        choice.then = now_;
        ++choice.then.number;
        choice.why = left_ ? "a collective failed, and no member is gone" : "no member is gone";
    }
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
    port_ = find_port();
    auto const nspace = pmix::make_job_name(short_host_name());
    now_ = std::move(then);
    int const size = static_cast<int>(seats.size());
    for (int rank = 0; rank < size; ++rank) {
        auto& one = seats_[static_cast<std::size_t>(seats[static_cast<std::size_t>(rank)])];
        one.who = {nspace, rank, size, rank, size, 0, 1, one.who.host, identity::source::muster};
        one.wants = one.stopped = false;
    }
    for (int const seat : seats) send(seats_[static_cast<std::size_t>(seat)], word_for(seats_[static_cast<std::size_t>(seat)]));
    calls_.begin(now_, seats, why);
    replace_lost();
}

/// Once those that are left train again.
void member_world::replace_lost() {
    for (; spares_ > 0 && !lost_.empty(); --spares_) {
        int const in_place_of = lost_.front();
        lost_.erase(lost_.begin());
        auto const& gone = seats_[static_cast<std::size_t>(in_place_of)];
        auto [ours, theirs] = make_sockets();
        seat next{std::move(ours), {}, gone.who, {-1, gone.of.at}};
        next.joins = true;
        try {
            static_cast<void>(calls_.start(in_place_of, theirs.get()));
        } catch (error const& problem) {
            calls_.say(fmt::format("note: no rank takes the place of member {}: {}", gone.of.number, problem.what()));
            continue;
        }
        auto& added = seats_.emplace_back(std::move(next));
        loop_.watch_readable(added.ours.get(), [this, &added] { on_readable(added); });
    }
}

/// It waits for its first generation, which begins at the others' next commit.
void member_world::welcome(seat& newcomer) {
    newcomer.ready = true;
    for (auto& one : seats_)
        if (one.is_member()) send(one, elastic::hosts_changed{.added = true});
}

}  // namespace muster
