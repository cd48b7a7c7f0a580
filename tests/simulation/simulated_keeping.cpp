#include "simulated_keeping.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace muster::simulation {

namespace act = keeping::act;
namespace happened = keeping::happened;

namespace {

constexpr double lost_after_s = 13;  ///< a host, or a keeper that stands still

/// The generation and step of the newest commit of all ranks of a generation.
template <typename Seen>
std::pair<std::uint64_t, std::uint64_t> newest_whole_of(std::vector<Seen> const& all) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::set<std::uint64_t>> ranks;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> sizes;
    for (auto const& one : all) {
        std::pair const which(one.what.by.generation, one.what.step);
        ranks[which].insert(one.what.by.rank);
        sizes[which] = one.what.by.world_size;
    }
    std::pair<std::uint64_t, std::uint64_t> newest{};
    for (auto const& [which, who] : ranks)
        if (who.size() == sizes[which]) newest = which;
    return newest;
}

}  // namespace

simulated_keeping::simulated_keeping(schedule const& of, course& its) : of_(of), its_(its) {
    nodes_.resize(static_cast<std::size_t>(of.hosts + of.spare_hosts));
}

void simulated_keeping::start_leader() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < nodes_.size(); ++i) names.push_back(host_name(i));
    leader_ = std::make_unique<keeping::world>(names, lost_after_s, of_.to_neighbours);
    ++leaders_;
    leader_stopped_ = false;
    unread_.clear();
    leader_sign_s_ = its_.now_;
    common_ = 0;
    feed(happened::beginning{});
}

void simulated_keeping::feed(decltype(keeping::event::what) event) {
    events_.push_back({its_.now_ + 1, std::move(event)});
    if (std::exchange(stepping_, true)) return;
    while (!events_.empty() && leader_) {
        auto const next = std::move(events_.front());
        events_.pop_front();
        for (auto const& deed : keeping::step(*leader_, next)) perform(deed);
        if (leader_->rounds.on_two_nodes() != common_) {
            if (leader_->rounds.on_two_nodes() > common_)
                faults_since_common_ = count_impaired(hosts_), leader_lost_since_ = leader_stopped_;
            common_ = leader_->rounds.on_two_nodes();
            common_since_s_ = its_.now_;
        }
    }
    events_.clear();
    stepping_ = false;
}

void simulated_keeping::perform(keeping::effect const& deed) {
    if (auto const* const order = std::get_if<act::order>(&deed)) {
        auto& its = nodes_[order->to];
        if (!its.keeper) return;
        its.to_keeper_s = std::max(its_.now_ + delay(), its.to_keeper_s);
        its_.after(its.to_keeper_s - its_.now_, what::keeper_does, static_cast<int>(order->to), its.incarnation,
                   post({.order = order->what}));
    } else if (auto const* const start = std::get_if<act::start>(&deed)) {
        for (auto const& one : start->whom)
            its_.after(its_.dice_.seconds(0.1, 1), what::keeper_comes, static_cast<int>(one.node), leaders_,
                       static_cast<std::size_t>(one.number));
    } else if (auto const* const close = std::get_if<act::close>(&deed)) {
        auto const& its = nodes_[close->whose];
        if (its.lives && its.keeper && !its.keeper->stopped && its_.now_ - its.touched_s > lost_after_s + 2)
            its_.fail("a keeper that answers is given up");
        end_keeper(close->whose, -1);  // a keeper ends with its connection, at the latest when it runs again
    } else if (auto const* const timer = std::get_if<act::set_timer>(&deed)) {
        double const late = its_.dice_.one_in(10) ? its_.dice_.seconds(0, 0.5) : 0;
        its_.after(timer->after_s + late, what::leader_times, 0, leaders_,
                   post({.timer = {timer->which, timer->node, timer->number}}));
    } else if (auto const* const said = std::get_if<act::say>(&deed)) {
        its_.tell("leader: {}", said->line);
    } else if (auto const* const answer = std::get_if<act::answer>(&deed)) {
        its_.after(delay(), what::launcher_hears, asked_, leaders_, post({.placed = answer->what}));
    }
}

void simulated_keeping::start_keeper(std::size_t which) {
    auto& its = nodes_[which];
    its.keeper = std::make_unique<keeper_process>(ids_ += 2);
    ++its.incarnation;
    its_.tell("a keeper comes on node {}", which);
    say(which, {.what = wire::keep_word::kind::there,
                .file = host_name(which),
                .address = host_name(which),
                .file_id = its.keeper->own.file()->id});
}

/// `seen_within_s` below 0: nobody sees it.
void simulated_keeping::end_keeper(std::size_t which, double seen_within_s) {
    auto& its = nodes_[which];
    if (!its.keeper) return;
    its.keeper.reset();
    ++its.incarnation;
    if (seen_within_s < 0 || !leader_) return;
    mail seen{.why = "the connection was closed"};
    seen.timer.node = which;
    its.from_keeper_s = std::max(its_.now_ + its_.dice_.seconds(0.001, seen_within_s), its.from_keeper_s);
    its_.after(its.from_keeper_s - its_.now_, what::leader_misses, static_cast<int>(which), leaders_, post(seen));
}

void simulated_keeping::say(std::size_t which, wire::keep_word word) {
    mail one{.word = std::move(word)};
    one.timer.node = which;
    auto& arrives_s = nodes_[which].from_keeper_s;
    arrives_s = std::max(its_.now_ + delay(), arrives_s);
    its_.after(arrives_s - its_.now_, what::leader_hears, static_cast<int>(which), leaders_, post(std::move(one)));
}

void simulated_keeping::take(std::size_t which, wire::keep_order const& order) {
    auto& its = *nodes_[which].keeper;
    if (order.what == wire::keep_order::kind::adopt) {
        for (auto const& weak : nodes_[which].opened)
            if (auto const file = weak.lock(); file && file->id == order.file_id) its.own.adopt(file);
        return say(which, {.what = wire::keep_word::kind::adopted,
                           .step = its.own.owned_parts().size(),
                           .file = host_name(which),
                           .address = host_name(which),
                           .file_id = its.own.file()->id});
    }
    carry_out(which, its.duties.take(order));
    if (its.duties.reports())
        its_.after(its_.dice_.seconds(0, 0.02), what::keeper_looks, static_cast<int>(which), nodes_[which].incarnation);
}

bool simulated_keeping::is_slow() const {
    return std::any_of(of_.faults.begin(), of_.faults.end(), [&](fault const& one) {
        return one.what == fault::kind::slow && one.at_s <= its_.now_ && its_.now_ < one.at_s + one.lasts_s;
    });
}

void simulated_keeping::carry_out(std::size_t which, std::vector<keeper_duties::duty> duties) {
    auto& its = *nodes_[which].keeper;
    for (auto& one : duties) {
        if (auto* const word = std::get_if<wire::keep_word>(&one)) {
            say(which, std::move(*word));
        } else if (auto* const send = std::get_if<keeper_duties::send>(&one)) {
            bool const moves = send->done.what == wire::keep_word::kind::moved;
            mail copies;
            copies.timer.number = static_cast<std::uint64_t>(nodes_[which].incarnation);
            copies.copies = std::move(*send);
            its_.after(is_slow() ? its_.dice_.seconds(0.5, 8) : its_.dice_.seconds(0.001, 0.3), what::copy_ends,
                       static_cast<int>(which), moves ? its.moves_sending : ++its.round_sending, post(std::move(copies)));
        } else if (std::holds_alternative<keeper_duties::stop_round>(one)) {
            ++its.round_sending;
        } else {
            ++its.moves_sending;
        }
    }
}

/// The copies are whole over there, or why they are not.
void simulated_keeping::end_copies(std::size_t from, mail const& what, int sending) {
    auto& its = nodes_[from];
    bool const moves = what.copies.done.what == wire::keep_word::kind::moved;
    if (!its.keeper || static_cast<std::uint64_t>(its.incarnation) != what.timer.number) return;
    if (sending != (moves ? its.keeper->moves_sending : its.keeper->round_sending)) return;
    auto word = what.copies.done;
    auto const to = host_number(what.copies.address);
    if (its.keeper->stopped || (nodes_[to].keeper && nodes_[to].keeper->stopped))  // a sender waits for the answer
        return its_.after(1, what::copy_ends, static_cast<int>(from), sending, post(what));
    if (!nodes_[to].keeper) word.fault = "the keeper there does not answer";
    if (std::exchange(nodes_[from].cuts_next, false)) word.fault = "the connection to the keeper there has ended";
    for (auto const& one : what.copies.items) {
        if (!word.fault.empty()) break;
        auto const& shelf = one.from_others ? its.keeper->of_others : its.keeper->own;
        auto const* const part = shelf.file()->find(one.what.part);
        bool const there =
            part != nullptr && part->slots[one.what.slot].whole && part->slots[one.what.slot].what.number == one.what.number;
        word.fault = there ? put(to, one.what, one.for_neighbour) : "a copy has come incomplete or changed";
    }
    say(from, std::move(word));
}

std::string simulated_keeping::put(std::size_t to, copy_shelf::copy const& one, bool for_neighbour) {
    auto& its = *nodes_[to].keeper;
    if (nodes_[to].full_until_s > its_.now_) return "memory is full";
    if (!for_neighbour && its.own.has_owner(one.part)) return "the rank of a copy runs there";
    auto& shelf = for_neighbour ? its.of_others : its.own;
    auto const made = shelf.begin(one);
    if (!made) return "each copy of a state is held";
    shelf.finish(*made);
    return {};
}

// ------------------------------------------------------------------------------------------------ what happens

void simulated_keeping::handle(occurrence const& one) {
    auto const which = static_cast<std::size_t>(one.a);
    switch (one.is) {
        case what::leader_goes_on:
            --its_.open_faults_;
            if (one.b != leaders_ || !leader_stopped_) return;
            its_.tell("the leader goes on");
            leader_stopped_ = false;
            leader_went_on_s_ = its_.now_;
            for (auto const& [is, item] : std::exchange(unread_, {})) handle({its_.now_, 0, is, 0, leaders_, item});
            return;
        case what::keeper_goes_on: {
            --its_.open_faults_;
            auto& its = nodes_[which].keeper;
            if (!its || !its->stopped || nodes_[which].incarnation != one.b) return;
            its_.tell("the keeper of node {} goes on", which);
            its->stopped = false;
            nodes_[which].touched_s = std::max(nodes_[which].touched_s, its_.now_);
            for (auto& order : std::exchange(its->inbox, {}))
                if (nodes_[which].keeper) take(which, order);
            return look_soon(which);
        }
        case what::keeper_comes: {
            auto& its = nodes_[which];
            if (!its.lives || one.b != leaders_ || its.keeper || !leader_) return;
            if (!leader_stopped_ && leader_->nodes[which].now != keeping::node::state::awaited) return;
            if (its.no_start_until_s > its_.now_) {
                if (!leader_stopped_) feed(happened::no_start{which, static_cast<int>(one.c), "it could not be started"});
                return;
            }
            return start_keeper(which);
        }
        case what::keeper_does: {
            auto& its = nodes_[which];
            if (!its.keeper || its.incarnation != one.b) return;
            if (its.keeper->stopped) return its.keeper->inbox.push_back(mail_[one.c].order);
            return take(which, mail_[one.c].order);
        }
        case what::keeper_looks: {
            auto& its = nodes_[which];
            if (its.keeper && its.incarnation == one.b && !its.keeper->stopped) carry_out(which, its.keeper->duties.look());
            return;
        }
        case what::leader_hears:
        case what::leader_misses: {
            if (one.b != leaders_ || !leader_) return;
            if (leader_stopped_) {
                unread_.emplace_back(one.is, one.c);
                return;
            }
            auto const& about = mail_[one.c];
            if (one.is == what::leader_hears)
                feed(happened::word{about.timer.node, about.word});
            else
                feed(happened::loss{about.timer.node, about.why});
            return;
        }
        case what::leader_times: {
            if (one.b != leaders_ || !leader_) return;
            if (leader_stopped_) return its_.after(0.5, one.is, one.a, one.b, one.c);
            auto const timer = mail_[one.c].timer;
            if (timer.which == keeping::timer::silence) {  // signs of life have come meanwhile
                for (std::size_t i = 0; i < nodes_.size(); ++i)
                    if (nodes_[i].lives && nodes_[i].keeper && !nodes_[i].keeper->stopped &&
                        leader_->nodes[i].now == keeping::node::state::there && its_.now_ - leader_went_on_s_ > 1)
                        feed(happened::word{i, {.what = wire::keep_word::kind::alive}});
            }
            return feed(timer);
        }
        case what::copy_ends: return end_copies(which, mail_[one.c], one.b);
        default: return;
    }
}

void simulated_keeping::note_memory_fault(std::size_t which) {
    nodes_[which].touched_s = std::max(nodes_[which].touched_s, its_.now_);
    ++faults_since_common_;
}

/// Of nodes that may still get ranks.
int simulated_keeping::count_impaired(std::vector<std::string> const& hosts) const {
    int count = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        bool const has_ranks = std::find(hosts.begin(), hosts.end(), host_name(i)) != hosts.end();
        bool const counts = has_ranks || nodes_[i].lives || leader_->nodes[i].now == keeping::node::state::there;
        count += counts && (!nodes_[i].keeper || nodes_[i].keeper->stopped);
    }
    return count;
}

void simulated_keeping::lose_host(std::size_t which) {
    auto& its = nodes_[which];
    if (!std::exchange(its.lives, false)) return;
    note_memory_fault(which);
    end_keeper(which, -1);  // its connection does not end
}

void simulated_keeping::befall(fault const& one) {
    using enum fault::kind;
    auto const number = static_cast<std::size_t>(one.whom);
    if (number >= nodes_.size()) return;
    auto& its = nodes_[number];
    switch (one.what) {
        case keeper_killed:
            if (!its.keeper) return;
            note_memory_fault(number);
            return end_keeper(number, 0.05);
        case keeper_stopped:
            if (!its.keeper || its.keeper->stopped) return;
            note_memory_fault(number);
            its.keeper->stopped = true;
            if (one.lasts_s >= 0) ++its_.open_faults_, its_.after(one.lasts_s, what::keeper_goes_on, one.whom, its.incarnation);
            return;
        case leader_killed:
            leader_lost_since_ = true;
            leader_.reset();
            ++leaders_;
            for (std::size_t i = 0; i < nodes_.size(); ++i) end_keeper(i, -1);
            return;
        case leader_stopped:
            if (!leader_ || leader_stopped_) return;
            leader_stopped_ = leader_lost_since_ = true;
            if (one.lasts_s >= 0) ++its_.open_faults_, its_.after(one.lasts_s, what::leader_goes_on, 0, leaders_);
            return;
        case memory_full:
            its.full_until_s = its_.now_ + one.lasts_s;
            its.touched_s = std::max(its.touched_s, its.full_until_s);
            return;
        case cut: its.cuts_next = true; return;
        case no_start: its.no_start_until_s = its_.now_ + one.lasts_s; return;
        default: return;
    }
}

// ------------------------------------------------------------------------------------------------ the launcher and the ranks

void simulated_keeping::ask(wire::place_states const& where) {
    ++asked_;
    hosts_ = where.hosts;
    leader_sign_s_ = its_.now_;
    its_.after(0.1, what::launcher_waits, asked_);
    if (leader_ && !leader_stopped_) feed(happened::request{where});
    if (leader_stopped_) leader_lost_since_ = true;
}

std::optional<wire::states_placed> simulated_keeping::hear(occurrence const& one) {
    if (one.a != asked_ || one.b != leaders_) return std::nullopt;
    leader_sign_s_ = its_.now_;
    if (mail_[one.c].placed.under_way) return std::nullopt;
    for (auto& each : nodes_) each.placed = each.incarnation;
    return mail_[one.c].placed;
}

leader_state simulated_keeping::wait(occurrence const& one) {
    auto const state = judge_leader({.heard_s = leader_sign_s_}, its_.now_, leader_ != nullptr);
    if (state == leader_state::awaited) {
        its_.after(0.1 + its_.dice_.seconds(0, 0.5), one.is, one.a);
        return state;
    }
    its_.tell("launcher: the leader {}", state == leader_state::silent ? "has not answered for long" : "has ended");
    leader_.reset();
    for (std::size_t i = 0; i < nodes_.size(); ++i) end_keeper(i, -1);
    return state;
}

std::shared_ptr<memory_file> simulated_keeping::open(std::size_t host, bool is_placed) {
    auto& its = nodes_[host];
    if (!is_placed || !its.keeper || its.placed != its.incarnation)
        return std::make_shared<memory_file>();  // it does not outlive the rank
    its.opened.push_back(its.keeper->own.file());
    return its.keeper->own.file();
}

void simulated_keeping::look_soon(std::size_t host) {
    its_.after(its_.dice_.seconds(0, 0.02), what::keeper_looks, static_cast<int>(host), nodes_[host].incarnation);
}

// ------------------------------------------------------------------------------------------------ what has to hold

/// Another leader comes with the next restart only, and memory of a rank's own is of no other process; a node whose keeper is lost may get another.
bool simulated_keeping::can_ever_spread(std::vector<keeping_rank> const& ranks) const {
    if (!leader_ || leader_stopped_ || !of_.to_neighbours) return false;
    auto const is_lost = [this](std::size_t which) { return leader_->nodes[which].now == keeping::node::state::lost; };
    for (auto const& one : ranks)
        if (is_lost(one.host) || !one.file || one.file->id == 0) return false;
    std::size_t left = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) left += !is_lost(i);
    return left >= 2;
}

bool simulated_keeping::is_spread(std::vector<keeping_rank> const& ranks, std::uint64_t first, double since_s) const {
    if (!can_ever_spread(ranks)) return true;
    if (first == 0 || common_ < first || common_since_s_ < since_s) return false;
    auto const all = copies_there();
    return std::all_of(ranks.begin(), ranks.end(), [&](keeping_rank const& rank) {
        std::set<std::size_t> nodes;
        for (auto const& one : all)
            if (one.what.part == rank.part && one.what.step == common_) nodes.insert(one.node);
        return nodes.size() >= 2;
    });
}

/// By keepers that live; what ranks alone have open is gone with them.
std::vector<simulated_keeping::seen_copy> simulated_keeping::copies_there() const {
    std::vector<seen_copy> all;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (!nodes_[i].lives || !nodes_[i].keeper) continue;
        for (auto* const shelf : {&nodes_[i].keeper->own, &nodes_[i].keeper->of_others})
            for (auto const& part : shelf->file()->parts)
                for (auto const& slot : part.slots)
                    if (slot.whole) all.push_back({i, nodes_[i].incarnation, slot.what});
    }
    return all;
}

/// For a story: what each keeper has.
void simulated_keeping::tell_slots() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (!nodes_[i].keeper) continue;
        for (bool const others : {false, true})
            for (auto const& part : (others ? nodes_[i].keeper->of_others : nodes_[i].keeper->own).file()->parts) {
                std::string text;
                for (auto const& slot : part.slots)
                    text += fmt::format(" {}{}{}", slot.what.step, slot.whole ? "" : "~", slot.what.held ? "h" : "");
                its_.tell("  node {}{} part {} wanted {}:{}", i, others ? " for others" : "", part.number, part.wanted, text);
            }
    }
}

bool simulated_keeping::is_quiet_since(double since_s) const {
    using enum fault::kind;
    for (auto const& one : of_.faults) {
        bool const lasting = one.what == memory_full || one.what == slow || one.what == no_start;
        double const until_s = one.what == cut ? its_.now_ : one.at_s + (lasting ? one.lasts_s : 0);
        if (one.at_s <= its_.now_ && until_s >= since_s) return false;
    }
    if (!leader_ || leader_stopped_ || leader_went_on_s_ >= since_s) return false;  // it may have heard of a loss only then
    std::size_t whole = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        auto const& one = nodes_[i];
        bool const runs = one.keeper && !one.keeper->stopped;
        if (!runs && (one.lives || leader_->nodes[i].now == keeping::node::state::there))
            return false;  // the leader does not know yet
        whole += runs;
    }
    return whole >= 2;
}

/// What was on two nodes has outlived one fault.
void simulated_keeping::check_end(std::vector<std::string> const& hosts) {
    hosts_ = hosts;
    seen_ = copies_there();
    all_ended_s_ = its_.now_;
    auto const whole = newest_whole_of(seen_);
    std::erase_if(seen_, [&](seen_copy const& one) { return nodes_[one.node].keeper->stopped; });
    its_.tell("(whole: commit {} of generation {}; on two nodes {}; faults since {})", whole.second, whole.first, common_,
              faults_since_common_);
    if (!of_.to_neighbours || common_ == 0 || faults_since_common_ > 1 || leader_lost_since_ || !leader_) return;
    if (whole.second >= common_) return;
    if (its_.story_ != nullptr) tell_slots();
    its_.fail(fmt::format("commit {} was on two nodes, and is lost by one fault", common_));
}

/// No earlier than the newest commit that was whole, or else the newest of the last generation, apart from nodes that have had a fault since.
void simulated_keeping::check_beginning(std::uint64_t step, std::uint64_t generation, std::vector<std::string> const& hosts,
                                        bool any) {
    if (leader_lost_since_) return;
    std::erase_if(seen_, [&](seen_copy const& one) {
        auto const& its = nodes_[one.node];
        return its.touched_s >= all_ended_s_ || !its.lives || !its.keeper || its.incarnation != one.incarnation;
    });
    for (auto const& host : hosts) {  // what they cannot be given
        auto const& its = nodes_[host_number(host)];
        if (its.touched_s >= all_ended_s_ || !its.keeper || its.keeper->stopped) return;
    }
    auto const whole = newest_whole_of(seen_);
    if (std::pair(generation, step) < whole)
        its_.fail(fmt::format("the ranks begin at commit {} of generation {}, and commit {} of generation {} was whole", step,
                              generation, whole.second, whole.first));
    if (step == 0 && any && !seen_.empty()) its_.fail("the ranks begin anew, and there are commits");
}

}  // namespace muster::simulation
