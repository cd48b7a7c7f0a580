#include "simulated_run.hpp"

#include <fmt/format.h>

#include <signal.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "comm/membership/kept_beginning.h"
#include "course.hpp"
#include "launch/elastic/lives.hpp"
#include "launch/elastic/membership_guards.hpp"
#include "launch/elastic/restart_policy.hpp"
#include "launch/watch/generation_loss.hpp"
#include "launch/watch/stop_looks.hpp"
#include "simulated_keeping.hpp"
#include "simulated_script.hpp"

namespace muster::simulation {

namespace {

namespace act = membership::act;
namespace happened = membership::happened;
using membership::member_state;

/// Of what a process does.
enum class doing { importing, greeting, meeting, syncing, computing, in_collective, saving, reforming, ended };

constexpr int exited(int code) {
    return code << 8;
}

constexpr std::array<char const*, 9> doing_names{
    "imports",  "waits in init()",       "meets the others", "gets the state",
    "computes", "waits in a collective", "commits",          "waits for the next generation",
    "has ended"};

/// A process with a rank's program.
struct process {
    int host = 0;
    member_view view = {};
    doing now = doing::importing;
    int round = 0;                                  ///< of its generation: the next collective
    int version = 0;                                ///< of its state: steps that are committed
    int vain = 0;                                   ///< generations that failed without a loss
    int calls = 0;                                  ///< what it does now; events of earlier ones are stale
    double stopped_s = -1;                          ///< since then; below 0: it runs
    double unkillable_s = -1;                       ///< until then
    double dies_s = -1;                             ///< when it dies, by an order that is under way
    double to_launcher_s = 0, from_launcher_s = 0;  ///< when the last message arrives
    std::vector<std::pair<elastic::message, double>> inbox = {};
    std::size_t read = 0;
    std::vector<elastic::message> outbox = {};
    std::size_t sent = 0;
    elastic::hosts_changed heard = {};
    double busy_s = 0;           ///< a long computation
    double went_on_s = -1e9;     ///< when it ran again, after it had been stopped
    bool computes_long = false;  ///< now
    bool has_state = false, must_sync = false, announced = false;
    bool announcement_known = false;  ///< to the launcher
    bool fails_itself = false;        ///< in this generation
    bool fails_next = false, ordered_to_end = false, dismissed = false;
    bool is_second = false;     ///< another program of the rank
    bool is_forgetful = false;  ///< it asks for the next generation, and has not said that it would
    int status = exited(1);     ///< of its end, as waitpid gives it, if that is a failure
    std::string said = {};      ///< its last words, if another rank has made it end
    bool at_fault = false;      ///< it is to end by itself, or by the launcher, and not because of another rank
    // what it keeps
    std::shared_ptr<memory_file> file = {};
    int part = 0;
    std::uint64_t commits = 0;      ///< the number of its last one
    std::uint64_t saves = 0;        ///< the number of the one under way
    std::size_t slot = 0;           ///< its place
    doing next = doing::computing;  ///< after it; reforming: it leaves at this commit
    kept_commits kept = {};
    bool dies_in_save = false;
    bool lives() const { return now != doing::ended; }
};

/// What the ranks of a generation share.
struct shared_world {
    std::vector<int> seats;              ///< by rank
    std::vector<std::uint32_t> arrived;  ///< at each of its collectives
    int root_version = 0;                ///< of rank 0, in a sync
    std::vector<bool> changed;           ///< what rank 0 says there
    // of kept states
    std::vector<std::vector<copy_shelf::copy>> found;  ///< by rank, as it comes to the first collective
    std::uint64_t newest = 0;                          ///< the largest number in a sync
    std::uint64_t first_commit = 0;
};

class run final : public course {
  public:
    run(schedule const& of, std::vector<std::string>* story) : course(of.seed ^ 0x5DEECE66Du, story), of_(of) {
        if (of.keeps) keeping_.emplace(of, static_cast<course&>(*this));
        known_.hosts.resize(8);
        for (std::size_t host = 0; host < 8; ++host) known_.hosts[host] = host_name(host);
    }
    outcome go();

  private:
    void start();
    int add_process(int host, double imports_s);
    void handle(occurrence const& one);

    // the launcher
    void feed(decltype(membership::event::what) event);
    void perform(membership::effect const& deed);
    void on_end(int seat);
    void note_end(int seat, membership::member_event how, std::string why);
    int first_size() const { return of_.keeps ? static_cast<int>(placed_.parts.size()) : of_.ranks; }
    void judge_end_of(int seat);
    void lose_host(int host);
    void act_on(verdict const& judged);
    bool goes_on_without(verdict const& judged);
    void decide_cause();
    void end_if_over();
    void kill_from_outside(int seat);
    bool is_to_blame(int seat) const;
    bool any_has_failed() const;
    void check_blame(verdict const& judged, bool at_end);
    void end_run(std::string const& why, std::optional<verdict> const& judged = {});
    void look_at_hosts();
    void look_at_stopped();
    void check_launcher();
    void check_answer(happened::message const& from, std::vector<membership::effect> const& deeds);
    void check_look(happened::look const& what);

    // the launcher of a run that starts again
    void begin_life(wire::states_placed const& placed);
    void end_life();
    void decide();
    void place();
    void ask_another_leader();
    std::vector<slot> waiting_slots() const;
    std::vector<std::string> hosts_of_members() const;

    // the ranks
    void send(int from, elastic::message what);
    void deliver(int to);
    void read(int seat);
    void take_generation(int seat);
    void enter(int seat, doing next);
    void complete(int seat);
    void recover(int seat);
    void save(int seat, std::uint64_t number, doing next);
    void end_save(int seat);
    bool is_spread() const;
    void leave(int seat, bool failed);
    void note_words(int seat);
    void die(int seat, bool well);
    void break_collectives(int seat);
    void begin_another_program(int seat, bool forgetful);
    void order_to_end(int seat, double delay, bool well, bool from_outside = false);
    bool runs(int seat) const { return at(seat).lives() && at(seat).stopped_s < 0; }
    process& at(int seat) { return processes_[static_cast<std::size_t>(seat)]; }
    process const& at(int seat) const { return processes_[static_cast<std::size_t>(seat)]; }
    shared_world& world_of(int generation) {
        if (worlds_.size() <= static_cast<std::size_t>(generation)) worlds_.resize(static_cast<std::size_t>(generation) + 1);
        return worlds_[static_cast<std::size_t>(generation)];
    }
    bool is_in(int seat, int generation) const { return at(seat).view.now && at(seat).view.now->number == generation; }
    /// A member to whose words the launcher listens.
    bool is_heard(int seat) const {
        auto const state = launcher_.seats[static_cast<std::size_t>(seat)].state;
        return membership::is_member(state) && state != member_state::condemned;
    }
    /// The others cannot go on.
    bool is_awaited() const {
        return loss_ || left_ || std::any_of(processes_.begin(), processes_.end(), [&](process const& one) {
                   auto const known = end_known_[static_cast<std::size_t>(&one - processes_.data())];
                   return one.now == doing::greeting || (one.now == doing::ended && !known) ||
                          asked_[static_cast<std::size_t>(&one - processes_.data())];
               });
    }
    bool is_silent(int host) const { return silent_[static_cast<std::size_t>(host)]; }
    bool is_settled() const;
    /// So long after the last fault all is well again. Nobody knows of a stopped rank before the others have missed it in a collective.
    double patience() const {
        auto const hides = [](fault const& one) {
            return one.what == fault::kind::stopped || one.what == fault::kind::departs || one.what == fault::kind::host_silent ||
                   one.what == fault::kind::execs;
        };
        return std::any_of(of_.faults.begin(), of_.faults.end(), hides) ? of_.comm_deadline_s + 1300 : 1300;
    }
    void befall(fault const& one);
    void silence(fault const& one);

    schedule const& of_;
    std::optional<simulated_keeping> keeping_;
    std::optional<simulated_script> script_;
    membership::world launcher_;
    std::deque<membership::event> events_;
    bool stepping_ = false, closed_ = false;
    int look_ = 0, cools_ = 0;  ///< the number of the timer that counts
    evidence known_;
    std::optional<generation_loss> loss_outlived_;
    stop_looks looks_;
    host_pool pool_;
    std::vector<process> processes_;
    std::vector<shared_world> worlds_;
    std::array<bool, 8> silent_{};
    std::vector<bool> end_known_;
    std::vector<int> progress_;         ///< collectives completed since the last fault, by seat
    bool loss_ = false, left_ = false;  ///< in the present generation: one is lost; one wants the next
    std::array<double, 64> waits_since_s_{};
    std::array<bool, 64> asked_{};  ///< by the words that came and went: a member has asked who it is, and was not answered
    std::array<double, 64>
        stopped_at_looks_s_{};  ///< since the first of the looks in a row that found it stopped; 0: the last one did not
    std::array<int, 64> found_stopped_{};  ///< the launcher's own looks in a row that did

    // of a run that starts again
    std::vector<slot> slots_;
    generation present_;
    wire::states_placed placed_;
    std::vector<std::string> lost_hosts_;
    std::vector<generation_end> ends_;
    generation_end failure_;  ///< the first of the present generation
    double began_s_ = 0;
    int begun_version_ = 0;
    bool over_ = false, measured_ = false, places_ = false;
    std::vector<std::string> hosts_placed_;
    int failures_ = 0;  ///< of leaders, to answer the present request
};

void run::start() {
    present_.born = of_.ranks;
    std::vector<int> on_host(8, 0);
    for (int rank = 0; rank < of_.ranks; ++rank) {
        auto const host = static_cast<std::size_t>(rank * of_.hosts / of_.ranks);
        present_.members.push_back({rank, {host_name(host), on_host[host]++}});
        slots_.push_back(present_.members.back().at);
    }
    for (int host = 0; host < of_.hosts; ++host)
        pool_.hosts.push_back({host_name(host), on_host[static_cast<std::size_t>(host)]});
    if (of_.by_hosts) script_.emplace(static_cast<course&>(*this), pool_.hosts);
    for (int host = of_.hosts; host < of_.hosts + of_.spare_hosts; ++host)
        for (int index = 0; index < on_host[0]; ++index) slots_.push_back({host_name(host), index});
    for (std::size_t i = 0; i < of_.faults.size(); ++i) {
        at_time(of_.faults[i].at_s, what::befalls, static_cast<int>(i));
        last_fault_s_ = std::max(last_fault_s_, of_.faults[i].at_s);
        ++open_faults_;
    }
    processes_.reserve(24);
    if (!keeping_) return begin_life({});
    keeping_->start_leader();
    place();
}

/// All ranks start.
void run::begin_life(wire::states_placed const& placed) {
    placed_ = placed;
    launcher_ = {};
    events_.clear();
    processes_.clear();
    end_known_.clear();
    progress_.clear();
    waits_since_s_ = {}, asked_ = {}, stopped_at_looks_s_ = {}, found_stopped_ = {};
    loss_ = left_ = closed_ = false;
    ++look_;
    began_s_ = now_;
    failure_ = {};
    loss_outlived_.reset();
    known_.ranks.clear();
    known_.members.clear();
    known_.started = true;
    known_.in_job = of_.in_job;
    known_.engine = of_.over_nodes ? "remote" : "";
    known_.deciding = known_.asked = known_.engine_awaited = false;
    known_.suspect = known_.first_lost = -1;
    auto& state = launcher_;
    auto const size = static_cast<int>(present_.members.size());
    state.by.least = of_.least;
    state.by.by_hosts = of_.by_hosts;
    state.by.warm_spares = of_.warm_spares;
    state.by.says_least = true;
    state.by.grace_s = 2;
    state.by.newcomer_limit_s = of_.newcomer_limit_s;
    state.by.restarts = of_.restarts;
    state.by.keeps_state = of_.keeps;
    if (of_.resets >= 0) state.by.resets = of_.resets;
    state.most = of_.by_hosts ? of_.most : size;
    state.spares = of_.spares;
    state.over_nodes = of_.over_nodes;
    auto const hosts = hosts_of_members();
    for (int rank = 0; rank < size; ++rank) {
        auto const& one = present_.members[static_cast<std::size_t>(rank)];
        int const node = static_cast<int>(std::find(hosts.begin(), hosts.end(), one.at.host) - hosts.begin());
        state.seats.push_back({.who = {"n", rank, size, one.at.index, one.at.index + 1, node, static_cast<int>(hosts.size()),
                                       one.at.host, identity::source::muster},
                               .of = one});
        int const seat = add_process(static_cast<int>(host_number(one.at.host)),
                                     dice_.one_in(40) ? dice_.seconds(1, 20) : dice_.seconds(0.01, 0.6));
        if (keeping_) at(seat).part = placed_.parts.at(static_cast<std::size_t>(rank));
    }
    state.now = present_;
    state.first = present_.number;
    for (auto const& at : waiting_slots()) {
        add_process(static_cast<int>(host_number(at.host)), dice_.seconds(0.01, 1.5));
        feed(happened::addition{state.seats.front().who, {}, at});
        launcher_.seats.back().who.host = at.host;
    }
    looks_ = {};
    plan_look(looks_, now_);
    if (of_.watches_stops) after(looks_.pause_s, what::launcher_looks);
    if (!keeping_) return;
    for (auto const& note : placed_.notes) tell("launcher: note: {}", note);
    tell("launcher: generation {} has {} ranks; commit {} is common", present_.number, size, placed_.step);
    for (auto const& host : hosts)
        if (is_silent(static_cast<int>(host_number(host)))) {  // it has gone meanwhile
            after(12, what::launcher_misses, static_cast<int>(host_number(host)));
            for (std::size_t seat = 0; seat < processes_.size(); ++seat)
                if (host_name(processes_[seat].host) == host) after(14, what::dies, static_cast<int>(seat));
        }
}

/// On one node, or on those without ranks.
std::vector<slot> run::waiting_slots() const {
    std::vector<slot> all;
    for (int spare = 0; spare < of_.warm_spares && !of_.keeps; ++spare)
        all.push_back({host_name(spare % of_.hosts), 10 + of_.ranks + spare});
    if (!of_.keeps || of_.warm_spares == 0) return all;
    auto const taken = hosts_of_members();
    auto const is_in = [](std::vector<std::string> const& hosts, std::string const& name) {
        return std::find(hosts.begin(), hosts.end(), name) != hosts.end();
    };
    for (auto const& one : slots_)
        if (!is_in(taken, one.host) && !is_in(lost_hosts_, one.host)) all.push_back(one);
    return all;
}

std::vector<std::string> run::hosts_of_members() const {
    std::vector<std::string> hosts;
    for (auto const& one : present_.members)
        if (std::find(hosts.begin(), hosts.end(), one.at.host) == hosts.end()) hosts.push_back(one.at.host);
    return hosts;
}

int run::add_process(int host, double imports_s) {
    processes_.emplace_back().host = host;
    end_known_.push_back(false);
    progress_.push_back(0);
    int const seat = static_cast<int>(processes_.size()) - 1;
    bool const first = seat < static_cast<int>(present_.members.size()) && known_.members.size() < present_.members.size();
    known_.ranks.push_back({.rank = seat,
                            .spare = first ? -1 : seat,
                            .node = host,
                            .now = rank_evidence::state::running,
                            .plays = first ? rank_evidence::part::rank : rank_evidence::part::coming});
    known_.members.push_back(first ? present_.members[static_cast<std::size_t>(seat)].number : -1);
    processes_.back().part = placed_.free_part + seat - static_cast<int>(placed_.parts.size());
    after(imports_s, what::rank_continues, seat, 0);
    return seat;
}

outcome run::go() {
    start();
    while (!queue_.empty() && end_.broken.empty()) {
        auto const next = queue_.top();
        queue_.pop();
        now_ = next.at_s;
        ++end_.events;
        handle(next);
        if (end_.events > 200'000) fail("it never comes to rest");
        if (open_faults_ == 0 && (over_ || (!closed_ && is_settled() && is_spread()))) break;
        if (now_ > last_fault_s_ + patience()) {
            fail(!closed_ && is_settled() ? "long after the last fault no commit of the present generation is on two nodes"
                                          : "long after the last fault the run has neither gone on nor given up");
            break;
        }
    }
    if (end_.broken.empty() && queue_.empty() && !over_ && !is_settled()) fail("nothing happens any more");
    if (end_.broken.empty() && closed_)
        for (std::size_t seat = 0; seat < launcher_.seats.size(); ++seat)
            if (launcher_.seats[seat].state == member_state::waiting) fail("the run has ended, and a spare waits without a word");
    end_.generations = launcher_.now.number;
    if (over_) end_.gave_up = end_.gave_up || of_.keeps;
    if (story_ != nullptr && !end_.broken.empty())
        for (std::size_t seat = 0; seat < processes_.size(); ++seat) {
            auto const& one = processes_[seat];
            tell("  seat {}: {}{}, generation {}, round {}, version {}; for the launcher {}", seat,
                 doing_names[static_cast<std::size_t>(one.now)], one.stopped_s >= 0 ? " (stopped)" : "",
                 one.view.now ? one.view.now->number : -1, one.round, one.version,
                 seat < launcher_.seats.size() ? membership::name_of(launcher_.seats[seat].state) : "unknown");
        }
    return end_;
}

/// All that live and are to be there are in the present generation and step; nobody waits who could come in.
bool run::is_settled() const {
    if (processes_.empty()) return false;
    if (launcher_.at == membership::phase::forming || (script_ && !script_->is_known(pool_))) return false;
    // Where all that are left are stopped, and none is lost, nobody waits for them but the watch: whoever has stopped them may let them go on.
    int alive = 0, stopped = 0;
    for (std::size_t i = 0; i < launcher_.seats.size(); ++i) {
        if (!membership::is_member(launcher_.seats[i].state)) continue;
        ++alive;
        stopped += processes_[i].lives() && processes_[i].stopped_s >= 0;
    }
    if (alive > 0 && alive == stopped && !loss_ && !of_.watches_stops) return true;
    alive = 0;
    for (std::size_t i = 0; i < launcher_.seats.size(); ++i) {
        auto const state = launcher_.seats[i].state;
        auto const& one = processes_[i];
        if (state == member_state::leaving || state == member_state::unneeded || state == member_state::overdue ||
            (state == member_state::coming && (of_.by_hosts || one.stopped_s < 0)) || state == member_state::condemned) {
            if (one.lives() || !end_known_[i]) return false;
            continue;
        }
        if (!membership::is_member(state)) continue;
        if (!one.lives()) return false;
        ++alive;
        if (!one.view.now || one.view.now->number != launcher_.now.number || progress_[i] < 2 || one.stopped_s >= 0) return false;
    }
    bool const meets = launcher_.at == membership::phase::meeting;           // one that has asked twice is not waited for
    if (launcher_.at != membership::phase::running && !meets) return false;  // they go on, so they have to hear of it
    // Whoever waits has no room, or is stopped.
    int waiting = 0;
    for (std::size_t i = 0; i < launcher_.seats.size(); ++i)
        if (launcher_.seats[i].state == member_state::waiting && processes_[i].stopped_s < 0) ++waiting;
    int const room = launcher_.most - alive - launcher_.departed;
    bool const last = launcher_.by.resets && launcher_.now.number >= *launcher_.by.resets;
    if (of_.by_hosts)
        for (auto const& one : launcher_.seats) {
            auto const all = pool_.all();
            bool const outside = one.state == member_state::waiting || one.state == member_state::coming;
            if (outside && std::find(all.begin(), all.end(), one.of.at) == all.end()) return false;
        }
    return alive > 0 && (waiting == 0 || room <= 0 || last);
}

// ------------------------------------------------------------------------------------------------ the launcher

void run::feed(decltype(membership::event::what) event) {
    events_.push_back({now_, std::move(event)});
    if (std::exchange(stepping_, true)) return;
    while (!events_.empty()) {
        auto const next = std::move(events_.front());
        events_.pop_front();
        bool const was_closed = launcher_.at == membership::phase::closed;
        auto const deeds = membership::step(launcher_, next);
        for (auto const& deed : deeds) {
            if (was_closed && !std::holds_alternative<act::look>(deed)) fail("the run has ended, and the launcher still acts");
            perform(deed);
        }
        if (auto const* const message = std::get_if<happened::message>(&next.what)) check_answer(*message, deeds);
        if (auto const* const look = std::get_if<happened::look>(&next.what)) check_look(*look);
    }
    stepping_ = false;
    check_launcher();
}

/// Whoever asks for a generation that has begun is told of it; and what is noted of one that asks who it is, by the words that came and went.
void run::check_answer(happened::message const& from, std::vector<membership::effect> const& deeds) {
    auto const seat = static_cast<std::size_t>(from.from);
    bool const told = std::any_of(deeds.begin(), deeds.end(), [&](auto const& deed) {
        auto const* const send = std::get_if<act::send>(&deed);
        return send != nullptr && send->to == from.from && std::holds_alternative<elastic::generation>(send->what);
    });
    auto const* const wish = std::get_if<elastic::reform>(&from.what);
    if (!is_heard(from.from) || closed_) return;
    if (std::holds_alternative<elastic::hello>(from.what)) asked_[seat] = !told;
    if (std::holds_alternative<elastic::announce>(from.what)) asked_[seat] = false;
    if (wish == nullptr) return;
    if (wish->after == launcher_.now.number) asked_[seat] = false;
    if (wish->after < launcher_.now.number && !told && !asked_[seat] && launcher_.seats[seat].state != member_state::started)
        fail("one that asks for a generation that has begun is not told of it");
}

/// Whoever is stopped at two looks in a row is killed, if others wait for it.
void run::check_look(happened::look const& what) {
    for (int const number : what.looked_at) {
        auto const seat = static_cast<std::size_t>(number);
        bool const stopped = std::find(what.stopped.begin(), what.stopped.end(), number) != what.stopped.end();
        auto& since_s = stopped_at_looks_s_[seat];
        since_s = !stopped ? 0 : since_s > 0 ? since_s : now_;
        if (what.what == membership::look_for::late_members && stopped && now_ - since_s >= membership::look_every_s &&
            !closed_ && is_heard(number))
            fail("one that is stopped at two looks in a row lives");
    }
}

void run::check_launcher() {
    for (std::size_t seat = 0; seat < launcher_.seats.size(); ++seat)
        if (is_heard(static_cast<int>(seat)) && (launcher_.seats[seat].state == member_state::asking) != asked_[seat])
            fail("for the launcher a rank asks who it is, and it does not, or it is not known that it asks");
    auto const& now = launcher_.now;
    for (auto const& one : now.members) {
        int found = 0;
        for (auto const& seat : launcher_.seats) found += seat.of.number == one.number;
        if (found != 1) fail(fmt::format("member {} has {} seats", one.number, found));
    }
}

void run::perform(membership::effect const& deed) {
    if (auto const* const send = std::get_if<act::send>(&deed)) {
        auto& to = at(send->to);
        if (auto const* const word = std::get_if<elastic::generation>(&send->what); word != nullptr && word->who.rank < 0)
            to.dismissed = true;
        if (std::holds_alternative<elastic::generation>(send->what)) asked_[static_cast<std::size_t>(send->to)] = false;
        double const arrives = std::max(now_ + dice_.seconds(0.0001, dice_.one_in(8) ? 0.5 : 0.02), to.from_launcher_s);
        to.from_launcher_s = arrives;
        if (auto const* const word = std::get_if<elastic::hosts_changed>(&send->what);
            word != nullptr && word->added && of_.by_hosts) {
            bool comes = false, all_new = true;
            for (std::size_t i = 0; i < launcher_.seats.size(); ++i) {
                comes = comes || launcher_.seats[i].state == member_state::coming;
                if (launcher_.seats[i].state == member_state::waiting) all_new = all_new && waits_since_s_[i] == now_;
            }
            if (comes && all_new) fail("one that comes with others is not to wait for them");
        }
        to.inbox.emplace_back(send->what, arrives);
        at_time(arrives, what::rank_reads, send->to);
    } else if (auto const* const kill = std::get_if<act::kill>(&deed)) {
        tell("launcher: kills {}", kill->whom);
        auto const& whom = at(kill->whom);
        bool const condemned = launcher_.seats[static_cast<std::size_t>(kill->whom)].state == member_state::condemned;
        if (condemned && !is_awaited()) fail("a rank is killed for which nobody waits");
        if (condemned && whom.lives() && !(whom.is_second && of_.over_nodes) && whom.stopped_s < 0 && !whom.computes_long &&
            !is_silent(whom.host) && now_ - whom.went_on_s > 6)
            fail("a rank that runs is killed");
        if (whom.lives() && whom.stopped_s >= 0 && now_ - whom.stopped_s < 0.4 && whom.went_on_s < 0 && condemned)
            fail(
                "a rank that is stopped for a moment is killed");  // one that has gone on may have been stopped at two looks in a row
        at(kill->whom).at_fault = whom.at_fault || whom.lives();
        order_to_end(kill->whom, dice_.seconds(0.001, 0.05), dice_.one_in(6));
    } else if (auto const* const begin = std::get_if<act::begin>(&deed)) {
        tell("launcher: generation {} begins with seats {}: {}{}", begin->now.number, fmt::join(begin->seats, ", "), begin->why,
             launcher_.sync ? "; state is spread" : "");
        auto& world = world_of(begin->now.number);
        if (!world.seats.empty()) fail("a generation begins twice");
        world.seats = begin->seats;
        auto const before = begin->now.number == launcher_.first + 1 ? static_cast<std::size_t>(first_size())
                                                                     : world_of(begin->now.number - 1).seats.size();
        loss_ = left_ = false;
        present_ = begin->now;
        note_held(known_, loss_outlived_);
        if (loss_outlived_) check_blame(loss_outlived_->judged, false);
        if (!loss_outlived_ && any_has_failed()) fail("a generation ends by a loss that is not noted");
        loss_outlived_.reset();
        std::vector<int> members;
        for (auto const& one : begin->now.members) members.push_back(one.number);
        number_anew(known_, members, begin->seats);
        for (int const seat : begin->seats) {
            auto const& its = launcher_.seats[static_cast<std::size_t>(seat)];
            if (at(seat).lives() && at(seat).stopped_s >= 0) fail("a generation begins with a member that is stopped");
            if (begin->seats.size() > before && its.asked.has_state && !its.asked.at_commit)
                fail("the world grows, and not all are at a commit");
        }
        if (begin->now.number > 16 * (of_.restarts + 1)) fail("generations without end");
        for (int const seat : begin->seats) {
            progress_[static_cast<std::size_t>(seat)] = 0;
            auto const& one = at(seat);
            if (seat < first_size()) continue;
            if (one.dismissed) fail("one that was left out takes part again");
        }
        if (launcher_.by.resets && begin->now.number > *launcher_.by.resets) fail("more generations than are allowed");
        if (static_cast<int>(begin->seats.size()) > std::max(of_.most, of_.ranks)) fail("more members than are allowed");
        if (static_cast<int>(begin->seats.size()) < of_.least) fail("fewer members than are allowed");
    } else if (auto const* const start = std::get_if<act::start_in_place_of>(&deed)) {
        if (of_.hosts > 1 || processes_.size() >= 20 || dice_.one_in(10)) return;  // it cannot be started
        auto const gone = launcher_.seats[static_cast<std::size_t>(start->seat)];
        add_process(at(start->seat).host, dice_.seconds(0.05, 1));
        feed(happened::addition{gone.who, gone.node_address, gone.of.at});
    } else if (auto const* const newcomer = std::get_if<act::start_at>(&deed)) {
        for (std::size_t i = 0; i < launcher_.seats.size(); ++i)
            if (launcher_.seats[i].of.at == newcomer->at && !membership::has_ended(launcher_.seats[i].state))
                fail("one is started on a slot that another still has");
        if (is_silent(newcomer->at.host[1] - '0') || processes_.size() >= 20 || dice_.one_in(20)) {
            pool_.note_failure(newcomer->at, {}, now_, 0);
            return after(0, what::launcher_hosts);
        }
        int const host = newcomer->at.host[1] - '0';
        int const seat = add_process(host, dice_.one_in(20) ? 1e6 : dice_.seconds(0.05, 1));
        auto who = launcher_.seats.front().who;
        who.host = newcomer->at.host;
        tell("launcher: starts seat {} on {}:{}", seat, newcomer->at.host, newcomer->at.index);
        feed(happened::addition{who, {}, newcomer->at, true});
    } else if (std::holds_alternative<act::look_at_hosts>(deed)) {
        if (of_.by_hosts) after(0.0001, what::launcher_hosts);
    } else if (auto const* const look = std::get_if<act::look>(&deed)) {
        std::vector<int> stopped;
        for (int const seat : look->at)
            if (at(seat).lives() && at(seat).stopped_s >= 0) stopped.push_back(seat);
        feed(happened::look{look->what, look->at, std::move(stopped), "n" + std::to_string(launcher_.now.number + 1)});
    } else if (auto const* const timer = std::get_if<act::set_timer>(&deed)) {
        if (timer->which == membership::timer::look) ++look_;
        double const late = dice_.one_in(10) ? dice_.seconds(0, 1) : 0;
        after(timer->after_s + late, what::launcher_times, static_cast<int>(timer->which),
              timer->which == membership::timer::look ? look_ : timer->seat);
    } else if (std::holds_alternative<act::cancel_look>(deed)) {
        ++look_;
    } else if (auto const* const waits = std::get_if<act::tell_that_it_waits>(&deed)) {
        waits_since_s_[static_cast<std::size_t>(waits->seat)] = now_;
    } else if (auto const* const cool = std::get_if<act::cool_down>(&deed)) {
        if (cool->whole_host)
            pool_.note_lost(cool->at.host, {}, now_, 0);
        else
            pool_.note_failure(cool->at, {}, now_, 0);
    } else if (auto const* const why = std::get_if<act::give_up>(&deed)) {
        end_.gave_up = !of_.keeps;
        if (launcher_.broken.unjudged) fail("the run gives up before the loss is judged");
        int alive = 0, waiting = 0;
        for (auto const& one : launcher_.seats)
            alive += membership::is_member(one.state), waiting += one.state == member_state::waiting;
        bool const last = of_.resets >= 0 && launcher_.now.number >= of_.resets;
        if (!last && alive >= of_.least) fail("the run gives up, and enough are left: " + why->why);
        act_on(blame_run(failure_cause::rank_end, why->why, exit_code(errc::peer_failed)));
    } else if (auto const* const said = std::get_if<act::say>(&deed)) {
        tell("launcher: {}", said->line);
    }
}

void run::end_run(std::string const& why, std::optional<verdict> const& judged) {
    if (std::exchange(closed_, true)) return;
    tell("launcher: the ranks end: {}", why);
    if (judged) {
        check_blame(*judged, true);
        bool const outside =
            is_from_outside(judged->cause) || (judged->of_rank && is_from_outside(known_[judged->culprits.front().rank]));
        failure_ = {.kind = kind_of_end(*judged, known_, ends_.empty()), .code = judged->exit_code, .from_outside = outside};
    }
    if (keeping_)
        end_life();
    else
        over_ = true;
    bool const nested = stepping_;
    if (!nested) return feed(happened::closing{});
    auto const deeds = membership::step(launcher_, {now_, happened::closing{}});
    for (auto const& deed : deeds) perform(deed);
}

void run::note_end(int seat, membership::member_event how, std::string why) {
    feed(happened::end{seat, how, std::move(why)});
    if (!membership::has_ended(launcher_.seats[static_cast<std::size_t>(seat)].state))
        fail("one has ended, and is not known as such");
}

/// As the groups of ranks and their supervisor do.
void run::on_end(int seat) {
    if (closed_ || end_known_[static_cast<std::size_t>(seat)]) return;
    end_known_[static_cast<std::size_t>(seat)] = true;
    auto const before = launcher_.seats[static_cast<std::size_t>(seat)].state;
    bool const well = at(seat).dies_s == -2;
    auto& known = known_[seat];
    known.now = rank_evidence::state::ended;
    known.note_end(well ? 0 : at(seat).status, 0);
    known.last_lines = at(seat).said;
    known.left_early = well && known.is_rank();
    known.settled = true;
    using enum membership::member_event;
    bool const member = membership::is_member(before);
    tell("launcher: seat {} {}", seat, well ? "has ended well" : "is lost");
    note_end(seat, well ? ends_well : fails, fmt::format("seat {}", seat));
    if (!member) {
        known.now = rank_evidence::state::gone;
        auto const& slot = launcher_.seats[static_cast<std::size_t>(seat)].of.at;
        if (before != member_state::leaving && membership::is_wanted(launcher_, seat) && of_.by_hosts)
            pool_.note_failure(slot, {}, now_, 0);
        if (of_.by_hosts) after(0.001, what::launcher_hosts);
        if (of_.warm_spares > 0 && !well && before != member_state::leaving && processes_.size() < 20)
            after(5, what::spare_again, seat);
        return;
    }
    if (!well) {
        loss_ = true;
        feed(happened::losses_known{});
    }
    judge_end_of(seat);
}

void run::judge_end_of(int seat) {
    if (closed_) return;
    std::string why_not;
    bool const waits = known_.deciding && !known_.engine.empty();
    act_on(judge_member_end(known_, seat, !waits && membership::can_go_on(launcher_, why_not)));
    known_[seat].now = rank_evidence::state::gone;
    end_if_over();
}

/// As run_supervisor does.
void run::act_on(verdict const& first) {
    if (closed_) return;
    if (first.next == verdict::step::hold) {
        if (hold_end(known_, first)) after(first.patience.count(), what::launcher_blames);
        return;
    }
    if (!first.ends()) return;
    if (!first.culprits.empty() && goes_on_without(first)) {
        tell("launcher: the others go on without {}", fmt::join(first.ranks_to_blame(), ", "));
        note_loss(known_, loss_outlived_, first);
        return feed(happened::loss_judged{});
    }
    auto const judged = blame_for_end(known_, loss_outlived_, first);
    end_run(judged.text, judged);
}

bool run::goes_on_without(verdict const& judged) {
    std::string why_not;
    if (judged.cause != failure_cause::rank_end && judged.cause != failure_cause::node && judged.cause != failure_cause::watcher)
        return false;
    if (!membership::can_go_on(launcher_, why_not)) {
        int alive = 0;
        bool able = false;
        for (std::size_t i = 0; i < launcher_.seats.size(); ++i) {
            alive += membership::is_member(launcher_.seats[i].state);
            able = able ||
                   (processes_[i].lives() && membership::is_member(launcher_.seats[i].state) && processes_[i].announcement_known);
        }
        bool const last = of_.resets >= 0 && launcher_.now.number >= of_.resets;
        if (able && alive >= of_.least && !last) fail("the run ends after a loss, and enough are left that can go on");
        return false;
    }
    for (auto const& one : judged.culprits)
        if (!known_[one.rank].wait_status) known_[one.rank].now = rank_evidence::state::gone;
    known_.first_lost = -1;
    return true;
}

/// Of what was held. The job goes on.
void run::decide_cause() {
    if (closed_ || !std::exchange(known_.deciding, false)) return;
    known_.scheduler.reset();
    auto judged = judge_cause(known_);
    if (judged.next == verdict::step::ask_scheduler) {
        known_.scheduler = scheduler_word{of_.in_job ? job_end::going_on : job_end::unknown, {}};
        judged = judge_cause(known_);
    }
    act_on(judged);
    if (closed_) return;
    if (!known_.deciding) known_.asked = known_.engine_awaited = false;
    if (known_.deciding) known_.engine_awaited = true;
    end_if_over();
}

void run::end_if_over() {
    auto const lives = [](membership::seat const& one) { return membership::is_member(one.state); };
    if (closed_ || known_.deciding || std::any_of(launcher_.seats.begin(), launcher_.seats.end(), lives)) return;
    auto const well = [](auto const& one) { return one.in_generation() && one.ended_well(); };
    if (any_has_failed() && !(loss_outlived_ && std::ranges::any_of(known_.ranks, well)))
        fail("the last generation has lost a rank that nobody has outlived, and the run ends well");
    end_run("no rank is left");
}

/// Nothing comes from there any more.
void run::lose_host(int host) {
    tell("launcher: host {} is lost", host);
    using enum membership::member_event;
    std::vector<int> silent;
    bool any = false;
    for (std::size_t seat = 0; seat < launcher_.seats.size() && !closed_; ++seat) {
        if (processes_[seat].host != host) continue;
        if (processes_[seat].lives()) processes_[seat].ordered_to_end = true;
        if (end_known_[seat]) continue;
        end_known_[seat] = any = processes_[seat].at_fault = true;
        auto& known = known_[static_cast<int>(seat)];
        if (membership::is_member(launcher_.seats[seat].state))
            silent.push_back(static_cast<int>(seat));
        else
            known.now = rank_evidence::state::gone;
        note_end(static_cast<int>(seat), is_lost_with_host, "its host is lost");
    }
    loss_ = loss_ || any;
    pool_.note_lost(host_name(host), {}, now_, 0);
    feed(happened::losses_known{});
    if (silent.empty()) return;
    auto const judged = judge_silence(known_, silent, duration(12));
    act_on(judged);
    for (int const seat : silent)
        if (known_[seat].running()) known_[seat].now = rank_evidence::state::lost;
    // All are silent: what ends is their connections.
    if (!closed_ && !judged.ends() && hold_end(known_, {})) after(0.3, what::launcher_blames);
}

// ------------------------------------------------------------------------------------------------ who is to blame

void run::kill_from_outside(int seat) {
    order_to_end(seat, 0, false, true);
}

/// The launcher knows that it has ended, by itself or by the launcher.
bool run::is_to_blame(int seat) const {
    auto const& known = known_[seat];
    return known.in_generation() && at(seat).at_fault && end_known_[static_cast<std::size_t>(seat)] && !known.ended_well();
}

/// Of the present generation.
bool run::any_has_failed() const {
    return std::ranges::any_of(known_.ranks, [](auto const& one) { return one.in_generation() && fault_of(one); });
}

/// Whoever is named is at fault, unless nobody who is has ended. `at_end`: all end; a stopped rank may be blamed then.
void run::check_blame(verdict const& judged, bool at_end) {
    bool anyone = false;
    for (int seat = 0; seat < static_cast<int>(processes_.size()); ++seat) anyone = anyone || is_to_blame(seat);
    if (judged.culprits.empty()) {
        if (anyone) fail("nobody is blamed for an end, and a rank is at fault: " + judged.text);
        return;
    }
    int const first = judged.culprits.front().rank;
    bool const stopped = at_end && at(first).lives() && at(first).stopped_s >= 0;
    if (known_[first].ended_well()) fail(fmt::format("seat {} is blamed, and has ended well", first));
    if (anyone && !is_to_blame(first) && !stopped) fail(fmt::format("seat {} is blamed, and another is at fault", first));
    if (!judged.of_rank) {
        if (judged.exit_code != exit_code(errc::peer_failed)) fail("a lost host has another code");
        return;
    }
    if (known_[first].wait_status && judged.exit_code != fault_of(known_[first])->exit_code)
        fail("a run that ends because of a rank has another code");
}

/// As stop_watch does. A host that is silent does not answer.
void run::look_at_stopped() {
    if (closed_) return;
    begin_look(looks_, now_);
    plan_look(looks_, now_);
    after(looks_.pause_s, what::launcher_looks);
    std::vector<int> stopped;
    for (std::size_t seat = 0; seat < processes_.size(); ++seat) {
        auto const& one = processes_[seat];
        bool const is_stopped = one.lives() && one.stopped_s >= 0 && !is_silent(one.host) && !end_known_[seat];
        auto& times = found_stopped_[seat];
        times = is_stopped ? times + 1 : 0;
        if (!is_stopped) continue;
        stopped.push_back(static_cast<int>(seat));
        // The second look kills it, or the third after a late one.
        if (times > 4 && !one.ordered_to_end && one.unkillable_s < now_)
            fail("one that has been stopped at two looks in a row lives");
    }
    for (int const seat : end_look(looks_, {stopped}).stopped) {
        if (at(seat).ordered_to_end) continue;
        tell("launcher: seat {} stays stopped: kills it", seat);
        at(seat).at_fault = known_[seat].killed_as_stopped = true;
        order_to_end(seat, 0.01, false);
    }
}

void run::look_at_hosts() {
    if (closed_) return;
    bool const follows_hosts = membership::anyone_announced(launcher_);
    if (follows_hosts) feed(happened::hosts{pool_, now_});
    ++cools_;
    if (auto const next = pool_.next_free_s(now_)) after(*next - now_ + 0.01, what::launcher_hosts, 1, cools_);
    if (!follows_hosts) return;
    auto const all = pool_.all();
    for (auto const& one : launcher_.seats)
        if ((one.state == member_state::waiting || one.state == member_state::coming) && !launcher_.by.resets &&
            std::find(all.begin(), all.end(), one.of.at) == all.end())
            fail("a newcomer whose slot is gone stays");
}

// ------------------------------------------------------------------------------------------------ restarts

/// Ends the others, and decides when all have ended.
void run::end_life() {
    bool const measured = std::any_of(processes_.begin(), processes_.end(),
                                      [&](process const& one) { return one.has_state && one.version > begun_version_; });
    generation_end end = failure_;
    end.number = present_.number;
    end.lived_s = now_ - began_s_;
    end.at_s = now_;
    using signs = progress_signs;
    bool const from_outside = end.from_outside || end.kind == end_kind::node || end.kind == end_kind::other;
    end.standstill = find_standstill({.code = end.code,
                                      .ended = from_outside ? signs::ending::from_outside : signs::ending::by_itself,
                                      .metric = measured    ? signs::measured::now
                                                : measured_ ? signs::measured::before
                                                            : signs::measured::never},
                                     false);
    if (measured && !end.standstill.empty()) fail("ranks that have committed are said to have made no progress");
    measured_ = measured_ || measured;
    ends_.push_back(std::move(end));
    for (std::size_t seat = 0; seat < processes_.size(); ++seat)
        if (processes_[seat].lives()) order_to_end(static_cast<int>(seat), dice_.seconds(0.001, 0.3), false);
    after(0.31, what::launcher_decides);
}

void run::decide() {
    bool waits = false;
    for (auto const& one : processes_) {
        auto const host = host_name(one.host);
        waits = waits || (one.lives() && std::find(lost_hosts_.begin(), lost_hosts_.end(), host) == lost_hosts_.end());
    }
    if (waits) return after(0.5, what::launcher_decides);
    for (std::size_t seat = 0; seat < processes_.size(); ++seat) die(static_cast<int>(seat), false);
    keeping_->check_end(hosts_of_members());
    ++life_;
    processes_.clear();
    end_known_.clear();
    progress_.clear();
    auto& last = ends_.back();
    for (auto const& host : lost_hosts_) last.lost_hosts.push_back(host);
    auto const decision = decide_restart({.most = of_.restarts}, ends_, 0.5);
    auto const end = [&](std::string const& why) {
        tell("launcher: the run ends: {}", why);
        over_ = true;
    };
    if (!decision.again) {
        auto const restarts = static_cast<int>(ends_.size()) - 1;
        bool const alike = ends_.size() >= 3 && ends_.back().at_s - ends_[ends_.size() - 3].at_s <= 60 &&
                           std::all_of(ends_.end() - 3, ends_.end(), [&](auto const& one) {
                               return one.code == ends_.back().code && one.kind == ends_.back().kind;
                           });
        bool const idle = ends_.size() >= 2 && !ends_.back().standstill.empty() && !ends_[ends_.size() - 2].standstill.empty();
        if (restarts < of_.restarts && !alike && !idle && last.kind != end_kind::last)
            fail("the run ends, and a restart is left: " + decision.why);
        return end(decision.why);
    }
    auto choice =
        next_generation(slots_, present_, {.least = of_.least, .most = of_.ranks, .restart = true}, {.lost_hosts = lost_hosts_});
    if (choice.next != generation_choice::step::change) return end(choice.why);
    present_ = std::move(choice.then);
    after(decision.delay.count(), what::launcher_places);
}

void run::place() {
    hosts_placed_.clear();
    std::vector<std::size_t> node_of;
    for (auto const& one : present_.members) {
        if (hosts_placed_.empty() || hosts_placed_.back() != one.at.host) hosts_placed_.push_back(one.at.host);
        node_of.push_back(hosts_placed_.size() - 1);
    }
    for (auto const& one : waiting_slots())
        if (hosts_placed_.back() != one.host) hosts_placed_.push_back(one.host);
    places_ = true;
    keeping_->ask(ask_to_place(hosts_placed_, node_of));
}

/// The leader has ended, or does not answer.
void run::ask_another_leader() {
    if (!asks_another_leader(ends_.empty(), ++failures_)) {
        tell("launcher: the run ends: no leader of the keepers answers");
        over_ = true;
        return;
    }
    keeping_->start_leader();
    place();
}

// ------------------------------------------------------------------------------------------------ the ranks

void run::send(int from, elastic::message what) {
    auto& one = at(from);
    double const arrives = std::max(now_ + dice_.seconds(0.0001, dice_.one_in(8) ? 0.5 : 0.02), one.to_launcher_s);
    one.to_launcher_s = arrives;
    one.outbox.push_back(std::move(what));
    at_time(arrives, what::launcher_reads, from);
}

/// Its own thread reads while the program computes; a stopped one reads later.
void run::read(int seat) {
    auto& one = at(seat);
    if (one.now == doing::importing || one.stopped_s >= 0 || is_silent(one.host)) return;
    while (one.lives() && one.read < one.inbox.size() && one.inbox[one.read].second <= now_) {
        auto const word = one.inbox[one.read++].first;
        bool const knew = one.view.now.has_value();
        auto const* const next = std::get_if<elastic::generation>(&word);
        if (!knew && next == nullptr) continue;
        auto const news = take(one.view, word);
        if (next != nullptr && news) {
            tell("seat {}: hears of generation {} as rank {}", seat, next->number, next->who.rank);
            take_generation(seat);
        } else if (news && !news->is_over &&
                   (one.now == doing::meeting || one.now == doing::syncing || one.now == doing::in_collective)) {
            after(dice_.seconds(0, 0.03), what::rank_fails, seat, one.calls);
        }
    }
}

void run::take_generation(int seat) {
    auto& one = at(seat);
    auto const& word = *one.view.now;
    if (word.who.rank < 0) {
        if (!one.dismissed) fail("a rank is told that it has no part, and the launcher has not said so");
        if (!dice_.one_in(8)) return die(seat, true);
        one.now = doing::importing;  // it does something else before it ends
        ++one.calls;
        return;
    }
    if (word.number > launcher_.first) {
        auto const& seats = world_of(word.number).seats;
        bool same = seats.size() == word.members.size();
        for (std::size_t rank = 0; same && rank < seats.size(); ++rank)
            same = launcher_.seats[static_cast<std::size_t>(seats[rank])].of.number == word.members[rank];
        if (!same) fail(fmt::format("seat {} hears of another generation {} than others", seat, word.number));
        if (static_cast<std::size_t>(word.who.rank) >= seats.size() || seats[static_cast<std::size_t>(word.who.rank)] != seat)
            fail(fmt::format("seat {} is told a wrong rank", seat));
        if (word.addresses.size() != (launcher_.over_nodes ? word.members.size() : 0)) fail("addresses are missing");
    } else {
        auto& first = world_of(launcher_.first);
        if (first.seats.empty())
            for (int r = 0; r < first_size(); ++r) first.seats.push_back(r);
        if (of_.over_nodes)
            for (int r = 0; r < first_size(); ++r)
                if (word.addresses[static_cast<std::size_t>(r)].empty() && at(r).lives() &&
                    !membership::has_ended(launcher_.seats[static_cast<std::size_t>(r)].state))
                    fail("a rank over nodes is told nothing of where another listens");
    }
    if (!one.announced && !of_.announces_late && !of_.never_announces && !one.is_forgetful)
        one.announced = true, send(seat, elastic::announce{});
    // All begin at once in the first generation; later the launcher says whether state is spread.
    one.must_sync = word.sync || word.number == launcher_.first || (one.is_second && !one.has_state);
    one.round = 0;
    one.fails_itself = false;
    enter(seat, doing::meeting);
}

void run::enter(int seat, doing next) {
    auto& one = at(seat);
    one.now = next;
    ++one.calls;
    if (next == doing::computing) {
        one.computes_long = one.busy_s > 100;
        double const usual = of_.keeps ? of_.step_s + dice_.seconds(0, 0.05) : dice_.seconds(0.01, 0.4);
        double const takes = one.busy_s > 0 ? std::exchange(one.busy_s, 0) : usual;
        return after(takes, what::rank_continues, seat, one.calls);
    }
    one.computes_long = false;
    // A collective: it is told at once of what is broken already.
    int const generation = one.view.now->number;
    auto& world = world_of(generation);
    if (keeping_ && !one.file) {
        auto const hosts = hosts_placed_;
        auto const host = std::find(hosts.begin(), hosts.end(), host_name(one.host)) - hosts.begin();
        bool const placed =
            static_cast<std::size_t>(host) < hosts.size() && !placed_.files.at(static_cast<std::size_t>(host)).empty();
        one.file = keeping_->open(static_cast<std::size_t>(one.host), placed);
        one.kept = open_part(*one.file, one.part, seat);
    }
    bool const fails = std::exchange(one.fails_next, false);
    one.fails_itself = one.fails_itself || fails;
    if (fails || is_broken(one.view, generation)) return after(dice_.seconds(0, 0.03), what::rank_fails, seat, one.calls);
    auto const round = static_cast<std::size_t>(one.round);
    if (world.arrived.size() <= round) world.arrived.resize(round + 1), world.changed.resize(round + 1);
    world.arrived[round] |= 1u << seat;
    if (keeping_ && next != doing::in_collective) {
        auto const found = copies_of(*one.file, one.part);
        for (auto const& copy : found) world.newest = std::max(world.newest, copy.step);
        world.found.resize(world.seats.size());
        if (next == doing::meeting) world.found[static_cast<std::size_t>(one.view.now->who.rank)] = found;
        world.newest = std::max(world.newest, one.commits);
    }
    if (world.seats.front() == seat) {
        if (next == doing::syncing) world.root_version = one.version;
        if (next == doing::in_collective) {
            auto const heard = take_host_changes(one.view);
            world.changed[round] = heard.added || heard.removed;
        }
    }
    std::uint32_t all = 0;
    for (int const member : world.seats) all |= 1u << member;
    auto const is_there = [&](int member) {
        auto const& other = at(member);
        bool const collective = other.now == doing::meeting || other.now == doing::syncing || other.now == doing::in_collective;
        return collective && is_in(member, generation) && other.round == one.round;
    };
    if (world.arrived[round] == all && std::all_of(world.seats.begin(), world.seats.end(), is_there))
        for (int const member : world.seats) after(dice_.seconds(0.0005, 0.01), what::rank_completes, member, at(member).calls);
    else
        after(of_.comm_deadline_s, what::rank_fails, seat, one.calls);  // unless it completes
}

void run::complete(int seat) {
    auto& one = at(seat);
    auto& world = world_of(one.view.now->number);
    auto const round = static_cast<std::size_t>(one.round++);
    bool const first = world.seats.front() == seat;
    one.vain = 0;
    if (one.now == doing::meeting) {
        if (!one.announced && !one.is_forgetful && !of_.never_announces) one.announced = true, send(seat, elastic::announce{});
        if (keeping_ && one.view.now->number == launcher_.first) return recover(seat);
        for (int const member : world.seats)
            if (at(member).must_sync != one.must_sync && is_in(member, one.view.now->number))
                fail("members of one generation have different words on the state");
        if (!one.must_sync) {
            for (int const member : world.seats)
                if (is_in(member, one.view.now->number) && at(member).now != doing::ended && at(member).round <= 1 &&
                    (!at(member).has_state || at(member).version != one.version || at(member).commits != one.commits))
                    fail(fmt::format("seats {} and {} differ, and the state is not spread", seat, member));
            return enter(seat, doing::computing);
        }
        bool anyone = false;
        for (int const member : world.seats) anyone = anyone || at(member).has_state;
        if (first && !one.has_state && anyone && one.view.now->number > 0) fail("rank 0 has no state, and others have");
        return enter(seat, doing::syncing);
    }
    if (one.now == doing::syncing) {
        one.version = world.root_version;
        one.has_state = true;
        one.must_sync = false;
        if (keeping_) return save(seat, muster_choose_kept_beginning(&world.newest, 1, 1).next, doing::computing);
        return enter(seat, doing::computing);
    }
    ++one.version;
    ++progress_[static_cast<std::size_t>(seat)];
    if (keeping_) return save(seat, one.commits + 1, world.changed[round] ? doing::reforming : doing::computing);
    if (world.changed[round]) return leave(seat, false);
    enter(seat, doing::computing);
}

/// As TorchState.recover: all go back to the same commit, if there is one.
void run::recover(int seat) {
    auto& one = at(seat);
    auto const& found = world_of(one.view.now->number).found;
    auto const copy_of = [&](std::size_t rank, std::uint64_t step) {
        copy_shelf::copy const* latest = nullptr;
        for (auto const& copy : found[rank])
            if (copy.step == step && (latest == nullptr || copy.number > latest->number)) latest = &copy;
        return latest;
    };
    std::vector<std::uint64_t> steps(found.size() * kept::slots);
    for (std::size_t rank = 0; rank < found.size(); ++rank)
        for (std::size_t i = 0; i < found[rank].size(); ++i) steps[rank * kept::slots + i] = found[rank][i].step;
    auto const chosen = muster_choose_kept_beginning(steps.data(), found.size(), kept::slots);
    auto const common = chosen.is_common ? chosen.step : 0;
    auto const step = of_.by_number ? common : chosen.step;
    auto const root = chosen.root;
    bool const is_first = one.view.now->who.rank == 0;
    if (is_first && one.view.now->number > 0) {
        auto const generation = step == 0 ? 0 : copy_of(root, step)->by.generation;
        tell("ranks: all begin with commit {} of generation {}{}", step, generation, common == 0 ? ", which not all find" : "");
        keeping_->check_beginning(step, generation, hosts_of_members(), !of_.by_number);
    }
    for (std::size_t rank = 0; common != 0 && rank < found.size(); ++rank) {
        auto const& first = *copy_of(0, common);
        auto const& its = *copy_of(rank, common);
        if (its.by.generation != first.by.generation || its.sum != first.sum) fail("the ranks begin with different states");
        if (its.by.world_size == found.size() && its.by.rank != rank)
            fail(fmt::format("rank {} goes on from what rank {} has committed", rank, its.by.rank));
    }
    one.must_sync = !of_.by_number;
    if (step == 0 && of_.by_number) one.has_state = true, begun_version_ = 0;
    if (step == 0) return enter(seat, of_.by_number ? doing::computing : doing::syncing);
    auto const& copy = *copy_of(root, step);
    one.version = begun_version_ = static_cast<int>(copy.sum);
    one.has_state = true;
    if (of_.by_number) {
        one.commits = step;
        one.must_sync = false;
        return enter(seat, doing::computing);
    }
    one.must_sync = common == 0 || copy.by.world_size != found.size();
    save(seat, chosen.next, one.must_sync ? doing::syncing : doing::computing);
}

/// Into its memory, by steps that others can see.
void run::save(int seat, std::uint64_t number, doing next) {
    auto& one = at(seat);
    if (one.dies_in_save && dice_.one_in(2)) return kill_from_outside(seat);
    one.slot = begin_commit(*one.file, one.kept, one.part, number);
    if (one.slot == kept::slots && story_ != nullptr) keeping_->tell_slots();
    if (one.slot == kept::slots) return fail("a rank finds no room for a commit, since all are held");
    one.saves = number;
    one.next = next;
    one.now = doing::saving;
    ++one.calls;
    if (one.dies_in_save) return kill_from_outside(seat);
    after(dice_.seconds(0.0005, dice_.one_in(6) ? 0.2 : 0.02), what::rank_saves, seat, one.calls);
}

void run::end_save(int seat) {
    auto& one = at(seat);
    auto const& who = one.view.now->who;
    int const generation = one.view.now->number;
    end_commit(*one.file, one.kept, one.part, one.slot, one.saves,
               {static_cast<std::uint64_t>(generation), static_cast<std::uint64_t>(who.rank),
                static_cast<std::uint64_t>(who.world_size)},
               static_cast<std::uint64_t>(one.version));
    one.commits = one.saves;
    keeping_->look_soon(static_cast<std::size_t>(one.host));
    auto& first = world_of(generation).first_commit;
    if (first == 0) first = one.commits;
    if (generation == launcher_.first && generation > 0 && one.version == begun_version_ + 1 && placed_.step != 0 &&
        placed_.world_size == first_size() &&  // a rank that begins with nothing may come before the order to copy
        of_.to_neighbours && of_.step_s > 0.9 && keeping_->on_two_nodes() == 0 && keeping_->is_quiet_since(began_s_ - 1))
        fail("what the ranks have begun with is on one node only");
    if (one.next == doing::reforming) return leave(seat, false);
    enter(seat, one.next);
}

/// A commit of the present generation has come to two nodes after the last fault, or none can.
bool run::is_spread() const {
    if (!keeping_ || launcher_.now.number >= static_cast<int>(worlds_.size())) return true;
    std::vector<simulated_keeping::keeping_rank> ranks;
    for (std::size_t seat = 0; seat < launcher_.seats.size(); ++seat)
        if (membership::is_member(launcher_.seats[seat].state)) {
            auto const& one = processes_[seat];
            if (one.stopped_s >= 0) return true;  // all are, as they are settled
            ranks.push_back({static_cast<std::size_t>(one.host), one.file, one.part});
        }
    return keeping_->is_spread(ranks, worlds_[static_cast<std::size_t>(launcher_.now.number)].first_commit, last_fault_s_);
}

void run::leave(int seat, bool failed) {
    auto& one = at(seat);
    int const generation = one.view.now->number;
    if ((!one.announced && !one.is_forgetful) || (failed && of_.without_handler)) {
        tell("seat {}: a collective fails and it cannot go on, and so it ends", seat);
        note_words(seat);
        return die(seat, false);
    }
    if (keeping_ && one.commits != 0) {
        auto const copies = copies_of(*one.file, one.part);
        bool const has = std::any_of(copies.begin(), copies.end(), [&](auto const& copy) {
            return copy.step == one.commits && copy.sum == static_cast<std::uint64_t>(one.version);
        });
        if (!has) fail("a rank cannot go back to its own last commit");
    }
    if (failed && one.now == doing::meeting && !is_broken(one.view, generation) && ++one.vain == 5) {
        one.at_fault = true;
        return die(seat, false);
    }
    tell("seat {}: leaves generation {} {}", seat, generation, failed ? "after a failure" : "at a commit");
    one.now = doing::reforming;
    left_ = left_ || generation == launcher_.now.number;
    ++one.calls;
    send(seat, elastic::reform{generation, one.has_state, !failed && !one.must_sync, 0});
    after(600, what::rank_fails, seat, one.calls);
}

/// What it writes on standard error as it ends because a collective has failed.
void run::note_words(int seat) {
    auto& one = at(seat);
    int const generation = one.view.now->number;
    auto const& seats = world_of(generation).seats;
    auto const find = [&](auto const& is) {
        auto const found = std::find_if(seats.begin(), seats.end(), [&](int other) { return other != seat && is(at(other)); });
        return found == seats.end() ? -1 : *found;
    };
    int const gone = find(
        [&](process const& other) { return !other.lives() || !is_in(static_cast<int>(&other - processes_.data()), generation); });
    int const stopped = find([](process const& other) { return other.stopped_s >= 0; });
    if (one.fails_itself)
        one.at_fault = true;
    else if (is_broken(one.view, generation))
        one.said = fmt::format("allreduce {}: {}", lost_rank_words, one.view.lost ? one.view.lost->why : "the launcher is gone");
    else if (gone >= 0)
        one.said = fmt::format("allreduce: it {}: waiting for rank {} (gone)", lost_rank_words, known_[gone].shown());
    else if (stopped >= 0)
        one.said = fmt::format("allreduce: it {}: waiting for rank {} ({}): process {} is stopped", lost_rank_words,
                               known_[stopped].shown(), host_name(at(stopped).host), 100 + stopped);
    else
        one.at_fault = true;  // its own patience is over
}

/// dies_s: -2 of one that has ended well.
void run::die(int seat, bool well) {
    auto& one = at(seat);
    if (!one.lives()) return;
    tell("seat {}: {}", seat, well ? "ends well" : "dies");
    one.now = doing::ended;
    ++one.calls;
    one.dies_s = well ? -2 : now_;
    if (one.file) {
        one.file->at(one.part).owner = -1;
        one.file.reset();
        keeping_->look_soon(static_cast<std::size_t>(one.host));
    }
    if (!is_silent(one.host)) after(dice_.seconds(0.0005, 0.05), what::launcher_sees_end, seat);
    break_collectives(seat);
}

/// Those that wait for it in a collective may see by themselves that it is gone.
void run::break_collectives(int seat) {
    for (std::size_t other = 0; other < processes_.size(); ++other) {
        auto const& their = processes_[other];
        if (their.now != doing::meeting && their.now != doing::syncing && their.now != doing::in_collective) continue;
        auto const& seats = world_of(their.view.now->number).seats;
        if (std::find(seats.begin(), seats.end(), seat) == seats.end()) continue;
        auto const& arrived = world_of(their.view.now->number).arrived;
        if (arrived.size() > static_cast<std::size_t>(their.round) &&
            (arrived[static_cast<std::size_t>(their.round)] >> seat & 1u) && dice_.one_in(2))
            continue;
        after(dice_.seconds(0.001, 0.2), what::rank_fails, static_cast<int>(other), their.calls);
    }
}

/// `well`: it ends with 0 just then.
void run::order_to_end(int seat, double delay, bool well, bool from_outside) {
    auto& one = at(seat);
    one.ordered_to_end = true;
    if (!one.lives() || (is_silent(one.host) && delay > 0)) return;  // the order does not come there
    at_time(std::max(now_ + delay, one.unkillable_s), what::dies, seat, well ? 1 : from_outside ? 2 : 0);
}

// ------------------------------------------------------------------------------------------------ what happens

void run::handle(occurrence const& one) {
    bool const of_ranks = one.is < what::befalls || one.is == what::dies || one.is == what::goes_on;
    if (one.life != life_ && of_ranks && one.is != what::launcher_misses) {
        open_faults_ -= one.is == what::goes_on;
        return;
    }
    switch (one.is) {
        case what::rank_continues: {
            auto& its = at(one.a);
            if (!its.lives() || its.calls != one.b) return;
            if (its.stopped_s >= 0) return after(0.2, one.is, one.a, one.b);
            if (its.now == doing::importing) {
                its.now = doing::greeting;
                ++its.calls;
                send(one.a, elastic::hello{of_.over_nodes ? "a" : ""});
                return read(one.a);
            }
            return enter(one.a, doing::in_collective);
        }
        case what::rank_reads: return read(one.a);
        case what::rank_completes:
        case what::rank_fails: {
            auto& its = at(one.a);
            if (!its.lives() || its.calls != one.b) return;
            if (its.stopped_s >= 0) return after(0.2, one.is, one.a, one.b);
            if (one.is == what::rank_completes) return complete(one.a);
            if (its.now == doing::reforming && !closed_) fail("a rank waits in vain for the next generation");
            if (its.now == doing::reforming) its.at_fault = true;
            if (its.now == doing::reforming) return die(one.a, false);
            return leave(one.a, true);
        }
        case what::launcher_reads: {
            auto& its = at(one.a);
            if (is_silent(its.host)) return after(0.3, one.is, one.a);
            if (its.sent >= its.outbox.size()) return;
            auto word = its.outbox[its.sent++];
            if (std::holds_alternative<elastic::announce>(word)) its.announcement_known = true;
            if (std::holds_alternative<elastic::hello>(word)) its.announcement_known = false;  // of the program before
            feed(happened::message{one.a, std::move(word)});
            return;
        }
        case what::launcher_sees_end: return on_end(one.a);
        case what::launcher_times: {
            auto const which = static_cast<membership::timer>(one.a);
            if (which == membership::timer::look && one.b != look_) return;
            return feed(happened::timer_fired{which, which == membership::timer::look ? -1 : one.b});
        }
        case what::launcher_blames: return decide_cause();
        case what::launcher_looks: return look_at_stopped();
        case what::launcher_hosts:
            if (one.a == 0 || one.b == cools_) look_at_hosts();
            return;
        case what::script_asks:
        case what::script_answers:
        case what::script_goes_on: return script_->handle(one);
        case what::launcher_hears_hosts:
            if (script_->hear(one, pool_)) look_at_hosts();
            return;
        case what::launcher_misses: {
            if (!is_silent(one.a)) return;
            if (keeping_) lost_hosts_.push_back(host_name(one.a));
            if (!closed_ && !processes_.empty()) lose_host(one.a);
            return;
        }
        case what::spare_again: {
            if (closed_ || processes_.size() >= 20) return;
            auto const gone = launcher_.seats[static_cast<std::size_t>(one.a)];
            add_process(at(one.a).host, dice_.seconds(0.05, 1));
            return feed(happened::addition{gone.who, gone.node_address, gone.of.at});
        }
        case what::befalls: --open_faults_; return befall(of_.faults[static_cast<std::size_t>(one.a)]);
        case what::host_returns:
            --open_faults_;
            silent_[static_cast<std::size_t>(one.a)] = false;
            for (std::size_t seat = 0; seat < processes_.size(); ++seat)
                if (processes_[seat].host == one.a) {
                    if (processes_[seat].lives() && processes_[seat].ordered_to_end)
                        order_to_end(static_cast<int>(seat), 0.01, false);
                    else if (processes_[seat].lives())
                        read(static_cast<int>(seat));
                    else if (!end_known_[seat])
                        after(0.001, what::launcher_sees_end, static_cast<int>(seat));
                }
            return;
        case what::goes_on:
            --open_faults_;
            if (at(one.a).lives() && at(one.a).stopped_s >= 0) {
                tell("seat {}: goes on", one.a);
                at(one.a).stopped_s = -1;
                at(one.a).went_on_s = now_;
                read(one.a);
            }
            return;
        case what::dies:
            if (at(one.a).lives()) at(one.a).status = SIGKILL, at(one.a).at_fault = at(one.a).at_fault || one.b == 2;
            return die(one.a, one.b == 1);
        case what::rank_saves: {
            auto const& its = at(one.a);
            if (!its.lives() || its.calls != one.b) return;
            if (its.stopped_s >= 0) return after(0.2, one.is, one.a, one.b);
            return end_save(one.a);
        }
        case what::launcher_decides: return decide();
        case what::launcher_places: return place();
        case what::launcher_waits:
            if (places_ && keeping_->is_asked(one.a) && keeping_->wait(one) != leader_state::awaited) ask_another_leader();
            return;
        case what::launcher_hears:
            if (auto const placed = places_ ? keeping_->hear(one) : std::nullopt) {
                places_ = false;
                failures_ = 0;
                begin_life(*placed);
            }
            return;
        default: return keeping_->handle(one);
    }
}

void run::befall(fault const& one) {
    using enum fault::kind;
    int const whom = one.what == host_silent || one.what == hosts_change || one.what > fails ? 0 : one.whom;
    if (whom >= static_cast<int>(processes_.size()) && one.what <= fails && one.what != host_silent) return;
    last_fault_s_ = std::max(last_fault_s_, now_ + std::max(one.lasts_s, 0.0));
    std::fill(progress_.begin(), progress_.end(), 0);
    tell("FAULT: {}", describe(one));
    if (one.what >= script_fails) return script_->befall(one);
    if (one.what > fails) return keeping_->befall(one);
    if (one.what == host_silent) return silence(one);
    auto& its = at(whom);
    switch (one.what) {
        case killed:
            its.dies_in_save = of_.keeps && one.number == 1;
            if (!its.dies_in_save) kill_from_outside(whom);
            return;
        case fails:
            if (its.lives()) its.status = exited(7), its.at_fault = true;
            return die(whom, false);
        case stopped:
            if (!its.lives() || its.stopped_s >= 0) return;
            its.stopped_s = now_;
            if (one.lasts_s >= 0) ++open_faults_, after(one.lasts_s, what::goes_on, whom);
            return;
        case departs:
            if (its.lives() && its.stopped_s < 0) die(whom, true);
            return;
        case computes: its.busy_s = one.lasts_s; return;
        case collective: its.fails_next = true; return;
        case unkillable: its.unkillable_s = now_ + one.lasts_s; return;
        case hosts_change: {
            std::vector<pool_host> found;
            int left = one.number;
            for (int host = 0; host < 4 && left > 0; ++host) {
                int const slots = std::min(left, std::max(1, of_.ranks / of_.hosts + (host == of_.hosts - 1 ? 3 : 0)));
                found.push_back({host_name(host), slots});
                left -= slots;
            }
            return script_->change(std::move(found));
        }
        case replayed:
            if (its.lives() && its.view.now && !its.inbox.empty() && dice_.one_in(2)) {
                auto const again = its.inbox[static_cast<std::size_t>(dice_.below(static_cast<int>(its.inbox.size())))].first;
                auto const* const word = std::get_if<elastic::generation>(&again);
                if (word == nullptr && !std::holds_alternative<elastic::lost>(again)) return;
                if (word != nullptr && its.view.now && word->number > its.view.now->number) return;
                if (auto const* const lost = std::get_if<elastic::lost>(&again);
                    lost != nullptr && its.view.now && lost->generation >= its.view.now->number)
                    return;
                auto const before = its.view;
                take(its.view, again);
                if (before.now != its.view.now || before.lost != its.view.lost)
                    fail("a word that comes again changes what a rank knows");
            } else if (!closed_) {
                auto const before = launcher_.seats;
                feed(happened::message{whom, elastic::reform{launcher_.now.number - dice_.between(1, 2), true, true, 0}});
                if (before != launcher_.seats) fail("a word that comes again changes what the launcher knows");
                feed(happened::message{whom, elastic::reform{launcher_.now.number + 3, true, true, 0}});
                if (before != launcher_.seats) fail("a word of the future changes what the launcher knows");
            }
            return;
        case execs: return begin_another_program(whom, one.number % 2 == 1);
        default: return;
    }
}

/// Nothing comes from the host, or goes there.
void run::silence(fault const& one) {
    if (is_silent(one.whom)) return;
    silent_[static_cast<std::size_t>(one.whom)] = true;
    if (one.lasts_s >= 0) return ++open_faults_, after(one.lasts_s, what::host_returns, one.whom);
    if (keeping_) keeping_->lose_host(static_cast<std::size_t>(one.whom));
    after(12, what::launcher_misses, one.whom);
    for (std::size_t seat = 0; seat < processes_.size(); ++seat)  // they end by themselves
        if (processes_[seat].host == one.whom) after(14, what::dies, static_cast<int>(seat));
}

/// In place of the one that runs; not between the beginning of a generation and its first collective, where nobody would see it.
void run::begin_another_program(int seat, bool forgetful) {
    auto& one = at(seat);
    if (!one.lives() || one.stopped_s >= 0 || one.ordered_to_end || is_silent(one.host)) return;
    elastic::hello const hello{of_.over_nodes ? "a" : ""};
    if (one.now == doing::greeting && !one.view.now) {
        one.is_forgetful = forgetful;
        return send(seat, hello);
    }
    bool const asks =
        one.now == doing::reforming && one.sent == one.outbox.size() && one.view.now->number == launcher_.now.number;
    if (!asks && one.now != doing::computing && one.now != doing::in_collective) return;
    auto const meets = [&](int other) { return at(other).lives() && is_in(other, one.view.now->number) && at(other).round == 0; };
    auto const& seats = world_of(one.view.now->number).seats;
    if (!asks && std::any_of(seats.begin(), seats.end(), meets)) return;
    tell("seat {}: another program begins", seat);
    if (!asks) break_collectives(seat);
    one.is_second = true;
    one.view = {};
    one.version = one.round = one.vain = 0;
    one.has_state = one.must_sync = one.announced = one.announcement_known = one.fails_next = false;
    one.heard = {};
    ++one.calls;
    if (asks) {
        one.now = doing::greeting;
        return feed(happened::message{seat, hello});
    }
    one.now = doing::importing;
    after(dice_.seconds(0.05, 1), what::rank_continues, seat, one.calls);
}

}  // namespace

outcome simulate(schedule const& of, std::vector<std::string>* story) {
    return run(of, story).go();
}

}  // namespace muster::simulation
