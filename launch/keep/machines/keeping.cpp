#include "launch/keep/machines/keeping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/cpuset.hpp"
#include "base/units.hpp"
#include "launch/keep/machines/keeping_guards.hpp"
#include "launch/remote/host_ranks.hpp"

namespace muster::keeping {

namespace {

constexpr double patience_with_keepers_s = 60, patience_with_round_s = 2, between_tellings_s = 1;
constexpr double after_failed_copies_s = 10, before_note_of_loss_s = 2;
constexpr double before_another_s = 0.5, patience_with_another_s = 20;
constexpr int most_tries_to_move = 3;

using state = node::state;
using phase = step_of_arrangement;

/// One step in progress.
struct stepper {
    world& all;
    double now_s;
    std::vector<effect> effects = {};

    void take(happened::beginning const&);
    void take(happened::word const& what);
    void take(happened::loss const& what) { on_lost(what.of, what.why); }
    void take(happened::no_start const& what);
    void take(happened::timer_fired const& what);
    void take(happened::request const& what);
    void take(happened::end const&) { all.now = phase::ended; }

    bool arranges() const { return all.now != phase::none && all.now != phase::ended; }
    bool may_start_again(node const& one) const;
    void start(std::vector<std::size_t> const& whom);
    void start_due();
    void miss_the_silent();
    void on_there(std::size_t which);
    void on_sent(std::size_t which, wire::keep_word const& word);
    void on_lost(std::size_t which, std::string const& why);
    void note_fault(std::size_t which, std::string const& fault);
    void note_loss(std::size_t which);
    void on_not_moved(std::size_t which, wire::keep_word const& word);
    void call_missing();
    bool is_wanted(node const& one) const;
    bool holds_up(node const& one) const;
    void list_anew();
    void proceed();
    void list_all();
    void arrange();
    void conclude();
    void settle();
    void finish();
    bool is_open(std::size_t which, std::uint64_t number) const;
    void answered(std::size_t which, std::uint64_t number);
    void carry_out_rounds();
    void tell_of_rounds();
    void send(std::size_t which, wire::keep_order order);
    void set_timer(timer which, double after_s, std::size_t node = 0, std::uint64_t number = 0) {
        effects.push_back(act::set_timer{which, after_s, node, number});
    }
    void say(std::string line, bool if_verbose = false) { effects.push_back(act::say{std::move(line), if_verbose}); }
};

copy_rounds::share share_of(std::vector<wire::kept_copy> const& copies) {
    copy_rounds::share all;
    for (auto const& one : copies) all = {one.generation, all.ranks + 1, one.world_size};
    auto const is_other = [&](auto const& one) { return one.generation != all.generation || one.world_size != all.world_size; };
    if (std::any_of(copies.begin(), copies.end(), is_other)) all.world_size = -1;  // they belong to different commits
    return all;
}

std::string format_seconds(double seconds) {
    return format_duration(duration(seconds));
}

}  // namespace

world::world(std::vector<std::string> const& names, double lost_after, bool at_neighbours)
    : lost_after_s(lost_after), to_neighbours(at_neighbours), rounds(names.size()) {
    for (auto const& name : names) nodes.push_back({.name = name});
}

std::vector<effect> step(world& state, event const& what) {
    stepper now{state, what.at_s};
    std::visit([&](auto const& one) { now.take(one); }, what.what);
    return std::move(now.effects);
}

namespace {

// ------------------------------------------------------------------------------------------------ who is there

void stepper::take(happened::beginning const&) {
    std::vector<std::size_t> whom(all.nodes.size());
    for (std::size_t i = 0; i < whom.size(); ++i) whom[i] = i;
    all.looked_s = now_s;
    start(whom);
    set_timer(timer::silence, between_looks_s);
}

/// If the launcher has gone meanwhile, its successor lets this start others.
bool stepper::may_start_again(node const& one) const {
    return all.now != phase::ended && one.memory != 0 && one.starts < most_starts && all.can_start;
}

void stepper::start(std::vector<std::size_t> const& whom) {
    act::start these;
    for (auto const which : whom) {
        all.nodes[which].now = state::awaited;
        all.nodes[which].heard_s = now_s - patience_with_another_s;  // not yet
        these.whom.push_back({which, ++all.nodes[which].starts});
    }
    effects.push_back(std::move(these));
}

void stepper::start_due() {
    std::vector<std::size_t> whom;
    for (std::size_t i = 0; i < all.nodes.size(); ++i) {
        auto const& one = all.nodes[i];
        if (one.now != state::due) continue;
        if (may_start_again(one))
            whom.push_back(i);
        else
            on_lost(i, one.why);
    }
    if (whom.empty()) return;
    for (auto const which : whom)
        set_timer(timer::another, patience_with_another_s, which, static_cast<std::uint64_t>(all.nodes[which].starts + 1));
    start(whom);
}

void stepper::take(happened::no_start const& what) {
    auto const& one = all.nodes[what.of];
    if (one.now == state::awaited && one.starts == what.number) on_lost(what.of, what.why);
}

/// Loses silent keepers: a stopped process' connection stays open. If this process was stopped itself, it has not listened.
void stepper::miss_the_silent() {
    bool const stood_still = now_s - std::exchange(all.looked_s, now_s) > 3 * between_looks_s;
    if (holds(guard::listens_from_awakening, stood_still, false))
        for (auto& one : all.nodes) one.heard_s = now_s;
    for (std::size_t i = 0; i < all.nodes.size(); ++i)
        if (holds(guard::misses_the_silent, all.nodes[i].now == state::there && now_s - all.nodes[i].heard_s > all.lost_after_s,
                  false))
            on_lost(i, fmt::format("its keeper has not answered for {}", format_seconds(all.lost_after_s)));
    if (holds(guard::says_that_it_is_at_it, arranges(), false)) effects.push_back(act::answer{{.under_way = true}});
    set_timer(timer::silence, between_looks_s);
}

void stepper::take(happened::word const& what) {
    using kind = wire::keep_word::kind;
    auto const which = what.from;
    auto const& word = what.what;
    auto& one = all.nodes[which];
    if (one.now == state::lost || one.now == state::due) return;
    one.heard_s = now_s;
    switch (word.what) {
        case kind::there:
            if (holds(guard::another_takes_over, one.memory != 0, false)) {
                effects.push_back(act::order{which, {.what = wire::keep_order::kind::adopt, .file_id = one.memory}});
                break;
            }
            [[fallthrough]];
        case kind::adopted:
            one.took_over = word.file_id == one.memory;
            one.about = word;
            one.memory = word.file_id;
            on_there(which);
            break;
        case kind::alive: break;
        case kind::newest: all.rounds.on_newest(which, word.step); break;
        case kind::no_ranks: all.rounds.on_no_ranks(which); break;
        case kind::held: all.rounds.on_held(which, word.round, word.step, share_of(word.copies)); break;
        case kind::sent: on_sent(which, word); break;
        case kind::listed:
            one.copies = word.copies;
            answered(which, word.round);
            break;
        case kind::moved:
            if (!word.fault.empty() && is_open(which, word.round)) on_not_moved(which, word);
            answered(which, word.round);
            break;
    }
    carry_out_rounds();
}

/// Ranks begin without what no rank begins with.
void stepper::on_not_moved(std::size_t which, wire::keep_word const& word) {
    auto& its = all.under_way;
    auto const why = fmt::format("a state that {} has could not be moved: {}", all.nodes[which].name, word.fault);
    auto const one = its.of_nobody.find(word.round);
    if (one == its.of_nobody.end()) {
        its.not_moved = why;
        return;
    }
    std::erase(its.made.left_out, one->second);
    say(fmt::format("note: --keep-state: {}; it was of rank {}, which no rank continues", why, one->second.what.rank));
}

void stepper::on_there(std::size_t which) {
    auto& one = all.nodes[which];
    one.now = state::there;
    if (all.to_neighbours) send(which, {.what = wire::keep_order::kind::report});
    if (all.to_neighbours && holds(guard::releases_at_coming, !arranges(), false))  // held for the keeper before it
        send(which, {.what = wire::keep_order::kind::release, .step = all.rounds.last()});
    all.rounds.on_there(which, !arranges() && one.about.step > 0);
    if (arranges()) list_anew();  // nobody has waited for it, perhaps
    proceed();
}

void stepper::on_lost(std::size_t which, std::string const& why) {
    auto& one = all.nodes[which];
    if (one.now == state::lost) return;
    bool const was_there = one.now == state::there;
    bool const again = was_there && may_start_again(one);
    one.why = why;
    if (was_there && !arranges()) note_loss(which);
    if (all.now == phase::moving) all.under_way.not_moved = fmt::format("the keeper on {} was lost: {}", one.name, why);
    one.now = again ? state::due : state::lost;
    one.copies.clear();
    effects.push_back(act::close{which});
    all.rounds.on_lost(which);
    carry_out_rounds();
    std::erase_if(all.under_way.open, [which](auto const& each) { return each.node == which || each.about == which; });
    if (again) set_timer(timer::another_start, before_another_s);
    if (again && arranges()) list_anew();
    proceed();
}

/// Delays the note, since all may be ending.
void stepper::note_loss(std::size_t which) {
    auto& one = all.nodes[which];
    if (std::exchange(one.untold_loss, one.why).empty()) set_timer(timer::note_of_loss, before_note_of_loss_s, which);
}

// ------------------------------------------------------------------------------------------------ rounds

void stepper::on_sent(std::size_t which, wire::keep_word const& word) {
    if (!word.fault.empty()) {
        note_fault(which, word.fault);
        return set_timer(timer::failed_copies, after_failed_copies_s, which, word.round);  // it may well last
    }
    all.rounds.on_sent(which, word.round, true);
    tell_of_rounds();
}

/// Reports the first one: copies may fail until the end of the run, and the user must not learn that from the loss of a node.
void stepper::note_fault(std::size_t which, std::string const& fault) {
    bool const first = all.last_fault.empty();
    if (fault == std::exchange(all.last_fault, fault)) return;
    say(fmt::format("note: --keep-state: what ranks on {} commit could not be copied to the next node: {}", all.nodes[which].name,
                    fault),
        !first);
}

void stepper::send(std::size_t which, wire::keep_order order) {
    if (all.nodes[which].now == state::there) effects.push_back(act::order{which, std::move(order)});
}

void stepper::carry_out_rounds() {
    using kind = copy_rounds::order::kind;
    bool begun = false;
    for (auto const& one : all.rounds.take_orders()) {
        wire::keep_order order{.round = one.round, .step = one.step};
        order.what = one.what == kind::hold   ? wire::keep_order::kind::hold
                     : one.what == kind::send ? wire::keep_order::kind::send
                                              : wire::keep_order::kind::release;
        if (one.what == kind::send) {
            auto const& to = all.nodes[one.to].about;
            order.address = to.address;
            order.port = to.port;
            order.key = to.key;
        }
        begun = begun || one.what == kind::hold;
        send(one.node, std::move(order));
    }
    if (begun) set_timer(timer::round, patience_with_round_s, 0, all.rounds.round());
}

/// Reports at most once a second.
void stepper::tell_of_rounds() {
    if (all.rounds.on_two_nodes() == all.told || std::exchange(all.tells, true)) return;
    set_timer(timer::telling, between_tellings_s);
}

// ------------------------------------------------------------------------------------------------ time

void stepper::take(happened::timer_fired const& what) {
    if (all.now == phase::ended) return;
    auto& one = all.nodes.at(what.node);
    switch (what.which) {
        case timer::silence: return miss_the_silent();
        case timer::another_start: return start_due();
        case timer::another:
            if (one.now != state::awaited || static_cast<std::uint64_t>(one.starts) != what.number) return;
            if (double const left_s = one.heard_s + patience_with_another_s - now_s; left_s > 0)  // it is taking over
                return set_timer(timer::another, left_s, what.node, what.number);
            return on_lost(what.node, "no other keeper has come");
        case timer::note_of_loss: {
            if (is_awaited(one)) return set_timer(timer::note_of_loss, before_note_of_loss_s, what.node);
            auto const why = std::exchange(one.untold_loss, {});
            bool const held = one.now == state::there && one.took_over;
            return say(
                held ? fmt::format("note: --keep-state: the keeper on {} was lost: {}; another holds what ranks there commit",
                                   one.name, why)
                     : fmt::format("note: --keep-state: what ranks on {} commit is no longer held: {}", one.name, why));
        }
        case timer::failed_copies: all.rounds.on_sent(what.node, what.number, false); return carry_out_rounds();
        case timer::round: all.rounds.on_late(what.number); return carry_out_rounds();
        case timer::telling:
            all.tells = false;
            all.told = all.rounds.on_two_nodes();
            if (all.told != 0) say(fmt::format("muster: --keep-state: commit {} is on two nodes", all.told), true);
            return;
        case timer::arrivals:
            if (all.now != phase::awaiting || what.number != all.requests) return;
            for (std::size_t i = 0; i < all.nodes.size(); ++i)
                if (holds_up(all.nodes[i]))
                    on_lost(i, fmt::format("no keeper came within {}", format_seconds(patience_with_keepers_s)));
    }
}

// ------------------------------------------------------------------------------------------------ the arrangement

void stepper::take(happened::request const& what) {
    all.under_way = {.wanted = what.what};
    all.now = phase::awaiting;
    all.rounds.pause();
    carry_out_rounds();
    call_missing();
    set_timer(timer::arrivals, patience_with_keepers_s, 0, ++all.requests);
    proceed();
}

bool stepper::is_wanted(node const& one) const {
    auto const& hosts = all.under_way.wanted.hosts;
    return std::find(hosts.begin(), hosts.end(), one.name) != hosts.end();
}

/// Ranks do not wait for another keeper on a node without ranks: with all ranks ended, it finds no memory to take over. When it has come, copies go to it.
bool stepper::holds_up(node const& one) const {
    return is_awaited(one) && (is_wanted(one) || one.memory == 0);
}

/// Starts missing keepers on nodes that will have ranks.
void stepper::call_missing() {
    for (auto& one : all.nodes)
        if (is_wanted(one) && one.now == state::lost && may_start_again(one)) one.now = state::due;
    start_due();
}

/// Repeats the arrangement with the keepers that are there by then.
void stepper::list_anew() {
    all.now = phase::awaiting;
    all.under_way.open.clear();
}

void stepper::proceed() {
    auto const is_late = [this](node const& one) { return holds_up(one); };
    if (all.now == phase::awaiting && std::none_of(all.nodes.begin(), all.nodes.end(), is_late)) list_all();
    if (all.now == phase::listing && all.under_way.open.empty()) arrange();
    if (all.now == phase::moving && all.under_way.open.empty()) {
        if (holds(guard::tries_to_move_again, !all.under_way.not_moved.empty() && ++all.under_way.tries < most_tries_to_move,
                  false)) {
            list_all();
            return proceed();
        }
        conclude();
    }
    if (all.now == phase::settling && all.under_way.open.empty()) finish();
}

bool stepper::is_open(std::size_t which, std::uint64_t number) const {
    auto const& open = all.under_way.open;
    return std::any_of(open.begin(), open.end(), [&](auto const& one) { return one.node == which && one.number == number; });
}

void stepper::answered(std::size_t which, std::uint64_t number) {
    std::erase_if(all.under_way.open, [&](auto const& one) { return one.node == which && one.number == number; });
    proceed();
}

void stepper::list_all() {
    all.now = phase::listing;
    for (std::size_t i = 0; i < all.nodes.size(); ++i) {
        if (all.nodes[i].now != state::there) continue;
        all.under_way.open.insert({i, ++all.question, i});
        send(i, {.what = wire::keep_order::kind::list, .round = all.question});
    }
}

void stepper::arrange() {
    auto& its = all.under_way;
    all.now = phase::moving;
    its.not_moved.clear();
    its.of_nobody.clear();
    auto const ranks = unpack_ranks(its.wanted.ranks, its.wanted.hosts.size(), its.wanted.world_size);
    its.node_of.assign(static_cast<std::size_t>(its.wanted.world_size), all.nodes.size());
    for (std::size_t host = 0; host < ranks.size(); ++host)
        for (int const rank : ranks[host])
            for (std::size_t i = 0; i < all.nodes.size(); ++i)
                if (all.nodes[i].name == its.wanted.hosts[host] && all.nodes[i].now == state::there)
                    its.node_of[static_cast<std::size_t>(rank)] = i;
    std::vector<std::vector<wire::kept_copy>> there;
    for (auto const& one : all.nodes) there.push_back(one.copies);
    its.made = arrange_states(there, its.node_of);
    for (auto const& one : its.made.moves) {
        auto const& to = all.nodes[one.to].about;
        its.open.insert({one.from, ++all.question, one.to});
        if (std::find(its.made.left_out.begin(), its.made.left_out.end(), one) != its.made.left_out.end())
            its.of_nobody.emplace(all.question, one);
        send(one.from, {.what = wire::keep_order::kind::move,
                        .round = all.question,
                        .step = one.what.step,
                        .generation = one.what.generation,
                        .address = to.address,
                        .port = to.port,
                        .key = to.key,
                        .part = one.what.part,
                        .of_neighbour = one.what.of_neighbour});
    }
}

void stepper::conclude() {
    auto& its = all.under_way;
    auto& made = its.made;
    auto& placed = its.placed = {};
    if (!its.not_moved.empty()) {
        placed.notes.push_back(its.not_moved + "; so no commit is common to all ranks");
        made.step = 0;
    }
    placed.parts = made.parts;
    placed.free_part = made.free_part;
    placed.step = made.step;
    placed.world_size = made.world_size;
    for (auto const& host : its.wanted.hosts) {
        auto const found = std::find_if(all.nodes.begin(), all.nodes.end(), [&](node const& one) { return one.name == host; });
        bool const there = found != all.nodes.end() && found->now == state::there;
        placed.files.push_back(there ? found->about.file : "");
        if (!there)
            placed.notes.push_back(fmt::format("what ranks on {} commit is not held: {}", host,
                                               found == all.nodes.end() ? "it came later than the run" : found->why));
    }
    if (!made.without.empty())
        placed.notes.push_back(fmt::format("no copy is left of what rank{} {} committed", made.without.size() == 1 ? "" : "s",
                                           cpuset{made.without}.to_list()));
    settle();
}

/// Ranks that opened their memory before that would keep copies of another history.
void stepper::settle() {
    auto& its = all.under_way;
    all.now = phase::settling;
    for (std::size_t i = 0; i < all.nodes.size(); ++i) {
        if (all.nodes[i].now != state::there) continue;
        wire::keep_order order{.what = wire::keep_order::kind::settle, .step = its.made.step, .generation = its.made.generation};
        for (std::size_t rank = 0; rank < its.node_of.size(); ++rank)
            if (its.node_of[rank] == i) order.parts.push_back(its.made.parts[rank]);
        if (holds(guard::keeps_the_left_out, true, false))
            for (int const part : left_out_parts(its.made, i)) order.parts.push_back(part);
        order.round = ++all.question;
        its.open.insert({i, order.round, i});
        send(i, std::move(order));
    }
}

void stepper::finish() {
    auto& its = all.under_way;
    std::vector<bool> have_ranks(all.nodes.size());
    for (auto const node : its.node_of)
        if (node < have_ranks.size()) have_ranks[node] = true;
    auto holders = have_ranks;
    for (auto const& one : its.made.left_out) holders[one.to] = true;
    if (!holds(guard::spreads_the_first, all.to_neighbours, false)) holders.clear();
    all.now = phase::none;
    all.rounds.go_on(its.made.step, have_ranks, holders);
    carry_out_rounds();
    effects.push_back(act::answer{std::move(its.placed)});
}

}  // namespace

std::string_view name_of(guard which) {
    constexpr std::array<std::string_view, static_cast<std::size_t>(guard::count_)> names{
        "misses the silent",       "another takes over",  "keeps the left out",      "copies of all ranks",
        "releases at coming",      "spreads the first",   "common stays held",       "neighbours' copies count",
        "moves what is elsewhere", "tries to move again", "forgets other histories", "listens from awakening",
        "says that it is at it",   "keeps the newest",    "misses no ranks"};
    return names[static_cast<std::size_t>(which)];
}

}  // namespace muster::keeping
