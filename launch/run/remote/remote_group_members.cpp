// Ranks behind shims that go on in place: without lost ones, and with those that come later.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/process/this_process.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "launch/run/remote/remote_group.hpp"
#include "launch/watch/failure_report.hpp"

namespace muster {

void remote_group::go() {
    end_phase("all ranks placed by their shims");
    if (ranks_.goes_on_in_place()) {
        std::vector<member_world::place> places;
        for (auto const& rank : ranks_)
            if (rank.spare < 0) places.push_back({rank.job.who, rank.place.address});
        world_.emplace(loop_, run_, std::move(places), calls_of_members());
        spares_.join(*world_);
    }
    ranks_.send_all(ranks_.make_go());
    questions_.beat();
}

member_world::group remote_group::calls_of_members() {
    return {
        .send = [this](int seat,
                       std::string const& packet) { ranks_[seat].link.send_surely(wire::encode(wire::member_packet{packet})); },
        .look = [this](std::vector<int> const& seats, auto then) { look_at_stopped(seats, std::move(then)); },
        .kill = [this](int seat) { kill_one(seat); },
        .say = [this](std::string const& line) { events_.say(line); },
        .begin = [this](generation const& now, std::vector<int> const& seats, std::string const& why) { begin(now, seats, why); },
        .start = [](int) { throw error(errc::unavailable, "over several nodes none is started"); },
        .start_at = [this](slot const& at) { spares_.start(at, command_, *world_); },
        .look_at_hosts = [this] { events_.look_at_hosts(); },
        .waits = [this](int seat) { spares_.log().note_wait(seat); },
        .give_up = [this](std::string const& why) { give_up_members(why); }};
}

void remote_group::kill_one(int seat) {
    if (!ranks_[seat].link.open()) return spares_.end_starter(seat);
    ranks_[seat].link.send(wire::encode(wire::signal{SIGKILL, true}));
}

void remote_group::on_message(remote_rank& rank, wire::member_packet const& packet) {
    if (world_ && events_.now() == run_phase::running) world_->take(rank.job.who.rank, packet.bytes);
}

/// The others hear at once that it has ended. True where they can go on without it, and nothing else is to be asked about its end.
bool remote_group::tell_members(rank_evidence const& one) {
    if (!world_ || events_.now() != run_phase::running) return false;
    auto const fault = one.ended_well() ? std::nullopt : find_end_fault(*one.wait_status, one.memory);
    world_->note_end(one.rank, !fault, fault ? fmt::format("{} {}", known_.name_of(one), fault->what) : "");
    world_->tell_lost();
    std::string why_not;
    if (!fault || one.asked || known_.deciding || !world_->can_go_on(why_not)) return false;
    events_.judge([&](evidence const& all) {
        return blame_rank(all, one.rank, failure_cause::rank_end, fault->what, fault->exit_code, fault->advice);
    });
    return true;
}

/// Without those whose program has ended, and those of whom nothing is heard any more: they end by themselves, at the latest when their shim
/// misses the launcher.
bool remote_group::goes_on_without(verdict const& judged) {
    constexpr std::array causes{failure_cause::rank_end, failure_cause::node, failure_cause::watcher, failure_cause::daemon};
    if (std::find(causes.begin(), causes.end(), judged.cause) == causes.end() || !world_) return false;
    for (auto const& one : judged.culprits)
        if (auto& rank = known_[one.rank]; !rank.wait_status)
            world_->note_end(one.rank, false, fmt::format("{} is lost", known_.name_of(rank)),
                             judged.cause == failure_cause::node);
    if (!can_go_on(world_)) return false;
    for (auto const& one : judged.culprits)
        if (!known_[one.rank].wait_status) ranks_.give_up(one.rank), output_.finish(one.rank);
    known_.first_lost = known_.first_orphan = known_.first_killed = -1;
    world_->tell_lost();
    world_->go_on();
    return true;
}

bool remote_group::take_hosts(host_pool const& hosts) {
    if (!world_ || !world_->takes_hosts()) return false;
    world_->take_hosts(hosts);
    return true;
}

/// It is placed, and begins at once: the others run.
void remote_group::begin_late(remote_rank& rank) {
    questions_.note_alive(rank.job.who.rank);
    spares_.note_place(rank);
    world_->place_newcomer(rank.job.who.rank, {rank.job.who, rank.place.address});
    rank.link.send(wire::encode(ranks_.make_go()));
}

/// The others have gone on without it.
void remote_group::note_left(rank_evidence& one) {
    one.left_early = false;
    if (world_) world_->note_end(one.rank, true, {});
}

void remote_group::begin(generation const& now, std::vector<int> const& seats, std::string const& why) {
    number_anew(now, seats);
    auto const whole_why = spares_.log().note_generation(now, seats, why);
    for (int const seat : seats) {
        auto who = ranks_[seat].job.who;
        who.rank = known_[seat].number;
        auto how = output_format(options_.tag_output, options_.timestamp_output, who, now.number);
        how.hidden = !options_.shows(who.rank, who.local_rank);
        output_.set_tag(seat, how);
    }
    events_.on_generation(now, whole_why);
}

}  // namespace muster
