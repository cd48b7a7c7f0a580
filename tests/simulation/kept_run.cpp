#include "kept_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "launch/elastic/generation.hpp"
#include "launch/elastic/lives.hpp"
#include "launch/elastic/restart_policy.hpp"
#include "launch/keep/keeper_duties.hpp"
#include "launch/keep/keeping.hpp"
#include "launch/remote/host_ranks.hpp"
#include "schedule.hpp"
#include "simulated_memory.hpp"

namespace muster::simulation {

namespace {

namespace act = keeping::act;
namespace happened = keeping::happened;

constexpr double lost_after_s = 13;  ///< a host, or a keeper that stands still
constexpr double patience_with_leader_s = 15;
constexpr double settled_within_s = 180;  ///< after the last fault

/// A process that keeps for one node.
struct keeper_process {
    keeper_process(std::uint64_t first_id) : own(make(first_id)), of_others(make(first_id + 1)), duties(own, of_others) {}
    static std::shared_ptr<memory_file> make(std::uint64_t id) {
        auto file = std::make_shared<memory_file>();
        file->id = id;
        return file;
    }
    simulated_memory own, of_others;
    keeper_duties duties;
    std::deque<wire::keep_order> inbox = {};   ///< while it is stopped
    int round_sending = 0, moves_sending = 0;  ///< what is sent counts if these are still the same at its end
    bool stopped = false;
};

struct node {
    std::unique_ptr<keeper_process> keeper = {};
    int incarnation = 0;  ///< of the keeper
    bool lives = true, cuts_next = false;
    double full_until_s = -1, no_start_until_s = -1;
    double touched_s = -1;                      ///< when it, or its keeper, had a fault last
    double to_keeper_s = 0, from_keeper_s = 0;  ///< when the last word arrives
};

struct rank_process {
    std::size_t node = 0;
    int part = 0;
    std::shared_ptr<memory_file> file = {};
    bool lives = false, has_begun = false, has_committed = false;
    std::uint64_t step = 0;  ///< of its last commit
    int calls = 0;
};

/// A copy that is there as a generation ends.
struct seen_copy {
    std::size_t node;
    int incarnation;  ///< of the keeper
    copy_shelf::copy what;
};

enum class what {
    befalls,
    ends_fault,  ///< of a keeper or the leader that was stopped
    rank_starts,
    rank_commits,
    commit_ends,
    rank_dies,
    keeper_comes,
    keeper_does,  ///< an order that has come
    keeper_looks,
    leader_hears,   ///< a word
    leader_misses,  ///< a connection that has ended
    leader_times,
    copy_ends,
    launcher_knows,  ///< that a rank or node is lost
    launcher_decides,
    launcher_places,
    launcher_waits,
    launcher_hears,
};

struct occurrence {
    double at_s;
    int order;
    what is;
    int a = 0, b = 0;
    std::size_t c = 0;  ///< an item of the mail
    bool operator<(occurrence const& other) const { return at_s != other.at_s ? at_s > other.at_s : order > other.order; }
};

/// What is on its way.
struct mail {
    wire::keep_order order = {};
    wire::keep_word word = {};
    happened::timer_fired timer = {};
    keeper_duties::send copies = {};
    wire::states_placed placed = {};
    std::string why = {};
};

enum class run_phase { runs, ends, waits, places, over };

class kept_run {
  public:
    kept_run(kept_schedule const& of, std::vector<std::string>* story) : of_(of), story_(story), dice_(of.seed ^ 0x1234567u) {}
    outcome go();

  private:
    void after(double delay, what is, int a = 0, int b = 0, std::size_t c = 0) {
        queue_.push({now_ + delay, order_++, is, a, b, c});
    }
    std::size_t post(mail one) {
        mail_.push_back(std::move(one));
        return mail_.size() - 1;
    }
    void fail(std::string const& why) {
        if (end_.broken.empty()) end_.broken = why, end_.at_s = now_;
    }
    template <typename... Args>
    void tell(fmt::format_string<Args...> text, Args&&... args) {
        if (story_ != nullptr) story_->push_back(fmt::format("{:9.3f} ", now_) + fmt::format(text, std::forward<Args>(args)...));
    }
    static std::string name_of(std::size_t node) { return std::string("n") + static_cast<char>('0' + static_cast<int>(node)); }
    double delay() { return dice_.seconds(0.0005, dice_.one_in(10) ? 0.3 : 0.01); }

    void handle(occurrence const& one);
    void befall(kept_fault const& one);
    void note_memory_fault(std::size_t node);
    int count_impaired() const;

    // the leader and the keepers
    void start_leader();
    void feed(decltype(keeping::event::what) event);
    void perform(keeping::effect const& deed);
    void start_keeper(std::size_t which);
    void end_keeper(std::size_t which, double seen_within_s);
    void take(std::size_t which, wire::keep_order const& order);
    void carry_out(std::size_t which, std::vector<keeper_duties::duty> duties);
    void say(std::size_t which, wire::keep_word word);
    void end_copies(std::size_t from, mail const& what, int sending);
    std::string put(std::size_t to, copy_shelf::copy const& one, bool for_neighbour);

    // the launcher and the ranks
    void begin_generation(wire::states_placed const& placed);
    void begin_training();
    void commit(int rank);
    void end_rank(int rank);
    void end_generation(end_kind kind, int code, bool from_outside, std::vector<std::string> lost);
    void decide();
    void place();
    void end_run(std::string const& why);

    // what has to hold
    std::vector<seen_copy> copies_there() const;
    std::pair<std::uint64_t, std::uint64_t> newest_whole(std::vector<seen_copy> const& all) const;
    void check_end();
    void check_spread();
    bool is_quiet() const;
    void tell_slots();
    void check_beginning(std::uint64_t step, std::uint64_t generation);

    kept_schedule const& of_;
    std::vector<std::string>* story_;
    dice dice_;
    std::priority_queue<occurrence> queue_;
    std::deque<mail> mail_;
    double now_ = 0, last_fault_s_ = 0;
    int order_ = 0, open_faults_ = 0;
    outcome end_;

    std::vector<node> nodes_;
    std::unique_ptr<keeping::world> leader_;
    int leaders_ = 0;  ///< so far: words and timers of earlier ones count for nothing
    bool leader_stopped_ = false, stepping_ = false;
    std::deque<keeping::event> events_;
    std::vector<std::pair<what, std::size_t>> unread_;  ///< of a leader that is stopped
    double leader_sign_s_ = 0, leader_went_on_s_ = -1e9;
    std::uint64_t ids_ = 0;

    run_phase phase_ = run_phase::runs;
    std::vector<rank_process> ranks_;
    std::vector<slot> pool_;
    generation present_;
    std::vector<std::string> lost_hosts_;
    std::vector<generation_end> ends_;
    int starting_ = 0;  ///< ranks that have not opened their memory
    double began_s_ = 0, placed_s_ = 0;
    std::uint64_t begun_step_ = 0;
    bool measured_ = false;
    std::uint64_t steps_made_ = 0;  ///< in the present generation
    int asked_ = 0;                 ///< requests so far

    std::uint64_t common_ = 0;     ///< of which the leader knows that it is on two nodes
    int faults_since_common_ = 0;  ///< that cost memory
    bool leader_lost_since_ = false;
    double all_ended_s_ = 0;
    std::vector<seen_copy> seen_;  ///< as the last generation ended
};

// ------------------------------------------------------------------------------------------------ the course of things

outcome kept_run::go() {
    auto const nodes = static_cast<std::size_t>(of_.nodes + of_.spare_nodes);
    nodes_.resize(nodes);
    for (std::size_t i = 0; i < nodes; ++i)
        for (int k = 0; k < of_.per_node; ++k) pool_.push_back({name_of(i), k});
    for (int rank = 0; rank < of_.nodes * of_.per_node; ++rank)
        present_.members.push_back({rank, pool_[static_cast<std::size_t>(rank)]});
    present_.born = of_.nodes * of_.per_node;
    for (std::size_t i = 0; i < of_.faults.size(); ++i) {
        queue_.push({of_.faults[i].at_s, order_++, what::befalls, static_cast<int>(i)});
        last_fault_s_ = std::max(last_fault_s_, of_.faults[i].at_s);
        ++open_faults_;
    }
    start_leader();
    place();
    while (!queue_.empty() && end_.broken.empty() && phase_ != run_phase::over) {
        auto const next = queue_.top();
        queue_.pop();
        now_ = next.at_s;
        ++end_.events;
        handle(next);
        if (open_faults_ == 0 && phase_ == run_phase::runs && steps_made_ >= 3 && now_ > last_fault_s_ + 3) break;
        if (now_ > last_fault_s_ + settled_within_s)
            fail("long after the last fault the ranks have neither begun again nor has the run ended");
        if (end_.events > 100'000) fail("it never comes to rest");
    }
    end_.generations = present_.number;
    end_.gave_up = phase_ == run_phase::over;
    return end_;
}

void kept_run::handle(occurrence const& one) {
    auto const which = static_cast<std::size_t>(one.a);
    switch (one.is) {
        case what::befalls: --open_faults_; return befall(of_.faults[which]);
        case what::ends_fault: {
            --open_faults_;
            if (one.b == 1) {
                if (one.c != static_cast<std::size_t>(leaders_) || !leader_stopped_) return;
                tell("the leader goes on");
                leader_stopped_ = false;
                leader_went_on_s_ = now_;
                for (auto const& [is, item] : std::exchange(unread_, {})) handle({now_, 0, is, 0, leaders_, item});
                return;
            }
            auto& its = nodes_[which].keeper;
            if (!its || !its->stopped || nodes_[which].incarnation != static_cast<int>(one.c)) return;
            tell("the keeper of node {} goes on", which);
            its->stopped = false;
            nodes_[which].touched_s = std::max(nodes_[which].touched_s, now_);
            for (auto& order : std::exchange(its->inbox, {}))
                if (nodes_[which].keeper) take(which, order);
            return;
        }
        case what::rank_starts: {
            auto& its = ranks_[which];
            if (!its.lives || its.calls != one.b) return;
            its.has_begun = true;
            if (its.file) open_part(*its.file, its.part, one.a);
            if (--starting_ == 0) begin_training();
            return;
        }
        case what::rank_commits:
            if (ranks_[which].lives && ranks_[which].calls == one.b) commit(one.a);
            return;
        case what::commit_ends: {
            auto& its = ranks_[which];
            if (!its.lives || its.calls != one.b) return;
            auto const step = its.step + 1;
            its.step = step;
            if (its.file) {
                end_commit(*its.file, its.part, one.c, step,
                           {static_cast<std::uint64_t>(present_.number), static_cast<std::uint64_t>(one.a), ranks_.size()});
                after(dice_.seconds(0, 0.02), what::keeper_looks, static_cast<int>(its.node), nodes_[its.node].incarnation);
            }
            its.has_committed = true;
            bool const all =
                std::all_of(ranks_.begin(), ranks_.end(), [&](auto const& each) { return each.lives && each.step >= step; });
            if (!all) return;
            ++steps_made_;
            check_spread();
            for (std::size_t r = 0; r < ranks_.size(); ++r)
                after(of_.step_s + dice_.seconds(0, 0.05), what::rank_commits, static_cast<int>(r), ranks_[r].calls);
            return;
        }
        case what::rank_dies:
            if (ranks_[which].lives && ranks_[which].calls == one.b) {
                end_rank(one.a);
                auto const node = ranks_[which].node;
                after(0.02, what::keeper_looks, static_cast<int>(node), nodes_[node].incarnation);
            }
            return;
        case what::keeper_comes: {
            auto& its = nodes_[which];
            if (!its.lives || one.b != leaders_ || its.keeper || !leader_) return;
            if (!leader_stopped_ && leader_->nodes[which].now != keeping::node::state::awaited) return;
            if (its.no_start_until_s > now_) {
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
            if (leader_stopped_) return after(0.5, one.is, one.a, one.b, one.c);
            auto const& timer = mail_[one.c].timer;
            if (timer.which == keeping::timer::silence && now_ - leader_went_on_s_ > 1)  // signs of life have come meanwhile
                for (std::size_t i = 0; i < nodes_.size(); ++i)
                    if (nodes_[i].lives && nodes_[i].keeper && !nodes_[i].keeper->stopped &&
                        leader_->nodes[i].now == keeping::node::state::there)
                        feed(happened::word{i, {.what = wire::keep_word::kind::alive}});
            return feed(timer);
        }
        case what::copy_ends: return end_copies(which, mail_[one.c], one.b);
        case what::launcher_knows: {
            if (one.b != present_.number || phase_ != run_phase::runs) return;
            auto const& about = mail_[one.c];
            bool const node = about.placed.world_size == 1;
            return end_generation(node ? end_kind::node : end_kind::rank, node ? 1 : about.placed.free_part,
                                  about.placed.free_part != 7, node ? std::vector{name_of(which)} : std::vector<std::string>());
        }
        case what::launcher_decides: return decide();
        case what::launcher_places: return place();
        case what::launcher_waits: {  // as state_holder::place: the leader has ended, or has not answered for long
            if (phase_ != run_phase::places || one.a != asked_) return;
            if (leader_ && now_ - leader_sign_s_ < patience_with_leader_s)
                return after(0.1 + dice_.seconds(0, 0.5), one.is, one.a);
            tell("launcher: the leader {}", leader_ ? "has not answered for 15 s" : "has ended");
            leader_.reset();
            for (std::size_t i = 0; i < nodes_.size(); ++i) end_keeper(i, -1);
            start_leader();
            return place();
        }
        case what::launcher_hears: {
            if (phase_ != run_phase::places || one.a != asked_ || one.b != leaders_) return;
            leader_sign_s_ = now_;
            if (!mail_[one.c].placed.under_way) begin_generation(mail_[one.c].placed);
            return;
        }
    }
}

void kept_run::note_memory_fault(std::size_t node) {
    nodes_[node].touched_s = std::max(nodes_[node].touched_s, now_);
    ++faults_since_common_;
}

/// Of nodes that may still get ranks.
int kept_run::count_impaired() const {
    int count = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        bool const has_ranks = std::any_of(present_.members.begin(), present_.members.end(),
                                           [&](member const& one) { return one.at.host == name_of(i); });
        bool const counts = has_ranks || nodes_[i].lives || leader_->nodes[i].now == keeping::node::state::there;
        count += counts && (!nodes_[i].keeper || nodes_[i].keeper->stopped);
    }
    return count;
}

void kept_run::befall(kept_fault const& one) {
    using enum kept_fault::kind;
    tell("FAULT: {}", describe(one));
    last_fault_s_ = std::max(last_fault_s_, now_ + std::max(one.lasts_s, 0.0));
    steps_made_ = 0;
    auto const number = static_cast<std::size_t>(one.whom);
    switch (one.what) {
        case rank_killed:
        case rank_fails: {
            if (number >= ranks_.size() || !ranks_[number].lives || phase_ != run_phase::runs) return;
            end_rank(one.whom);
            mail known;
            known.placed.free_part = one.what == rank_killed ? 137 : 7;
            return after(dice_.seconds(0.001, 0.1), what::launcher_knows, 0, present_.number, post(known));
        }
        case keeper_killed:
            if (!nodes_[number].keeper) return;
            note_memory_fault(number);
            return end_keeper(number, 0.05);
        case keeper_stopped: {
            auto& its = nodes_[number].keeper;
            if (!its || its->stopped) return;
            note_memory_fault(number);
            its->stopped = true;
            if (one.lasts_s >= 0)
                ++open_faults_,
                    after(one.lasts_s, what::ends_fault, one.whom, 0, static_cast<std::size_t>(nodes_[number].incarnation));
            return;
        }
        case node_lost: {
            auto& its = nodes_[number];
            if (!its.lives) return;
            note_memory_fault(number);
            its.lives = false;
            end_keeper(number, -1);  // its connection does not end
            for (std::size_t r = 0; r < ranks_.size(); ++r)
                if (ranks_[r].lives && ranks_[r].node == number) end_rank(static_cast<int>(r));
            mail known;
            known.placed.world_size = 1;
            return after(lost_after_s, what::launcher_knows, one.whom, present_.number, post(known));
        }
        case leader_killed:
            leader_lost_since_ = true;
            leader_.reset();
            ++leaders_;
            for (std::size_t i = 0; i < nodes_.size(); ++i) end_keeper(i, -1);
            return;
        case leader_stopped:
            if (!leader_ || leader_stopped_) return;
            leader_stopped_ = leader_lost_since_ = true;
            if (one.lasts_s >= 0) ++open_faults_, after(one.lasts_s, what::ends_fault, 0, 1, static_cast<std::size_t>(leaders_));
            return;
        case memory_full:
            nodes_[number].full_until_s = now_ + one.lasts_s;
            nodes_[number].touched_s = std::max(nodes_[number].touched_s, now_ + one.lasts_s);
            return;
        case slow: return;
        case cut: nodes_[number].cuts_next = true; return;
        case no_start: nodes_[number].no_start_until_s = now_ + one.lasts_s; return;
        case count_: return;
    }
}

// ------------------------------------------------------------------------------------------------ the leader and the keepers

void kept_run::start_leader() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < nodes_.size(); ++i) names.push_back(name_of(i));
    leader_ = std::make_unique<keeping::world>(names, lost_after_s, of_.to_neighbours);
    ++leaders_;
    leader_stopped_ = false;
    unread_.clear();
    leader_sign_s_ = now_;
    common_ = 0;
    feed(happened::beginning{});
}

void kept_run::feed(decltype(keeping::event::what) event) {
    events_.push_back({now_ + 1, std::move(event)});
    if (std::exchange(stepping_, true)) return;
    while (!events_.empty() && leader_) {
        auto const next = std::move(events_.front());
        events_.pop_front();
        for (auto const& deed : keeping::step(*leader_, next)) perform(deed);
        if (leader_->rounds.on_two_nodes() != common_) {
            if (leader_->rounds.on_two_nodes() > common_)
                faults_since_common_ = count_impaired(), leader_lost_since_ = leader_stopped_;
            common_ = leader_->rounds.on_two_nodes();
        }
    }
    events_.clear();
    stepping_ = false;
}

void kept_run::perform(keeping::effect const& deed) {
    if (auto const* const order = std::get_if<act::order>(&deed)) {
        auto& its = nodes_[order->to];
        if (!its.keeper) return;
        its.to_keeper_s = std::max(now_ + delay(), its.to_keeper_s);
        after(its.to_keeper_s - now_, what::keeper_does, static_cast<int>(order->to), its.incarnation,
              post({.order = order->what}));
    } else if (auto const* const start = std::get_if<act::start>(&deed)) {
        for (auto const& one : start->whom)
            after(dice_.seconds(0.1, 1), what::keeper_comes, static_cast<int>(one.node), leaders_,
                  static_cast<std::size_t>(one.number));
    } else if (auto const* const close = std::get_if<act::close>(&deed)) {
        auto const& its = nodes_[close->whose];
        if (its.lives && its.keeper && !its.keeper->stopped && now_ - its.touched_s > lost_after_s + 2)
            fail("a keeper that answers is given up");
        end_keeper(close->whose, -1);  // a keeper ends with its connection, at the latest when it runs again
    } else if (auto const* const timer = std::get_if<act::set_timer>(&deed)) {
        double const late = dice_.one_in(10) ? dice_.seconds(0, 0.5) : 0;
        after(timer->after_s + late, what::leader_times, 0, leaders_,
              post({.timer = {timer->which, timer->node, timer->number}}));
    } else if (auto const* const said = std::get_if<act::say>(&deed)) {
        tell("leader: {}", said->line);
    } else if (auto const* const answer = std::get_if<act::answer>(&deed)) {
        after(delay(), what::launcher_hears, asked_, leaders_, post({.placed = answer->what}));
    }
}

void kept_run::start_keeper(std::size_t which) {
    auto& its = nodes_[which];
    its.keeper = std::make_unique<keeper_process>(ids_ += 2);
    ++its.incarnation;
    tell("a keeper comes on node {}", which);
    say(which, {.what = wire::keep_word::kind::there,
                .file = name_of(which),
                .address = name_of(which),
                .file_id = its.keeper->own.file()->id});
}

/// `seen_within_s` below 0: nobody sees it.
void kept_run::end_keeper(std::size_t which, double seen_within_s) {
    auto& its = nodes_[which];
    if (!its.keeper) return;
    its.keeper.reset();
    ++its.incarnation;
    if (seen_within_s < 0 || !leader_) return;
    mail seen{.why = "the connection was closed"};
    seen.timer.node = which;
    its.from_keeper_s = std::max(now_ + dice_.seconds(0.001, seen_within_s), its.from_keeper_s);
    after(its.from_keeper_s - now_, what::leader_misses, static_cast<int>(which), leaders_, post(seen));
}

void kept_run::say(std::size_t which, wire::keep_word word) {
    mail one{.word = std::move(word)};
    one.timer.node = which;
    auto& arrives_s = nodes_[which].from_keeper_s;
    arrives_s = std::max(now_ + delay(), arrives_s);
    after(arrives_s - now_, what::leader_hears, static_cast<int>(which), leaders_, post(std::move(one)));
}

void kept_run::take(std::size_t which, wire::keep_order const& order) {
    auto& its = *nodes_[which].keeper;
    if (order.what == wire::keep_order::kind::adopt) {
        for (auto const& rank : ranks_)
            if (rank.lives && rank.has_begun && rank.node == which && rank.file && rank.file->id == order.file_id)
                its.own.adopt(rank.file);
        return say(which, {.what = wire::keep_word::kind::adopted,
                           .step = its.own.owned_parts().size(),
                           .file = name_of(which),
                           .address = name_of(which),
                           .file_id = its.own.file()->id});
    }
    carry_out(which, its.duties.take(order));
    if (its.duties.reports())
        after(dice_.seconds(0, 0.02), what::keeper_looks, static_cast<int>(which), nodes_[which].incarnation);
}

void kept_run::carry_out(std::size_t which, std::vector<keeper_duties::duty> duties) {
    auto& its = *nodes_[which].keeper;
    for (auto& one : duties) {
        if (auto* const word = std::get_if<wire::keep_word>(&one)) {
            say(which, std::move(*word));
        } else if (auto* const send = std::get_if<keeper_duties::send>(&one)) {
            bool const is_slow = std::any_of(of_.faults.begin(), of_.faults.end(), [&](kept_fault const& fault) {
                return fault.what == kept_fault::kind::slow && fault.at_s <= now_ && now_ < fault.at_s + fault.lasts_s;
            });
            bool const moves = send->done.what == wire::keep_word::kind::moved;
            mail copies;
            copies.timer.number = static_cast<std::uint64_t>(nodes_[which].incarnation);
            copies.copies = std::move(*send);
            after(is_slow ? dice_.seconds(0.5, 8) : dice_.seconds(0.001, 0.3), what::copy_ends, static_cast<int>(which),
                  moves ? its.moves_sending : ++its.round_sending, post(std::move(copies)));
        } else if (std::holds_alternative<keeper_duties::stop_round>(one)) {
            ++its.round_sending;
        } else {
            ++its.moves_sending;
        }
    }
}

/// The copies are whole over there, or why they are not.
void kept_run::end_copies(std::size_t from, mail const& what, int sending) {
    auto& its = nodes_[from];
    bool const moves = what.copies.done.what == wire::keep_word::kind::moved;
    if (!its.keeper || static_cast<std::uint64_t>(its.incarnation) != what.timer.number) return;
    if (sending != (moves ? its.keeper->moves_sending : its.keeper->round_sending)) return;
    auto word = what.copies.done;
    auto const to = static_cast<std::size_t>(what.copies.address[1] - '0');
    if (its.keeper->stopped || (nodes_[to].keeper && nodes_[to].keeper->stopped))  // a sender waits for the answer
        return after(1, what::copy_ends, static_cast<int>(from), sending, post(what));
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

std::string kept_run::put(std::size_t to, copy_shelf::copy const& one, bool for_neighbour) {
    auto& its = *nodes_[to].keeper;
    if (nodes_[to].full_until_s > now_) return "memory is full";
    if (!for_neighbour && its.own.has_owner(one.part)) return "the rank of a copy runs there";
    auto& shelf = for_neighbour ? its.of_others : its.own;
    auto const made = shelf.begin(one);
    if (!made) return "each copy of a state is held";
    shelf.finish(*made);
    return {};
}

// ------------------------------------------------------------------------------------------------ the ranks

void kept_run::begin_generation(wire::states_placed const& placed) {
    phase_ = run_phase::runs;
    began_s_ = placed_s_ = now_;
    steps_made_ = 0;
    ranks_.assign(present_.members.size(), {});
    starting_ = static_cast<int>(ranks_.size());
    std::vector<std::string> hosts;
    for (auto const& one : present_.members)
        if (std::find(hosts.begin(), hosts.end(), one.at.host) == hosts.end()) hosts.push_back(one.at.host);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        auto& its = ranks_[r];
        its.node = static_cast<std::size_t>(present_.members[r].at.host[1] - '0');
        its.part = placed.parts.at(r);
        its.calls = present_.number * 1000 + 1;
        its.lives = nodes_[its.node].lives;
        auto const host =
            static_cast<std::size_t>(std::find(hosts.begin(), hosts.end(), present_.members[r].at.host) - hosts.begin());
        if (!placed.files.at(host).empty() && nodes_[its.node].keeper) its.file = nodes_[its.node].keeper->own.file();
        after(dice_.seconds(0.05, 0.5), what::rank_starts, static_cast<int>(r), its.calls);
        if (!its.lives) {  // its host has gone meanwhile
            mail known;
            known.placed.world_size = 1;
            after(lost_after_s, what::launcher_knows, static_cast<int>(its.node), present_.number, post(known));
        }
    }
    for (auto const& note : placed.notes) tell("launcher: note: {}", note);
    tell("launcher: generation {} has {} ranks; commit {} is common", present_.number, ranks_.size(), placed.step);
}

/// All begin with the newest number that all find.
void kept_run::begin_training() {
    if (phase_ != run_phase::runs || std::any_of(ranks_.begin(), ranks_.end(), [](auto const& one) { return !one.lives; }))
        return;
    std::map<std::uint64_t, std::size_t> found;
    for (auto const& rank : ranks_) {
        std::set<std::uint64_t> steps;
        if (auto const* const part = rank.file ? rank.file->find(rank.part) : nullptr)
            for (auto const& one : part->slots)
                if (one.whole) steps.insert(one.what.step);
        for (auto const step : steps) ++found[step];
    }
    begun_step_ = 0;
    for (auto const& [step, count] : found)
        if (count == ranks_.size()) begun_step_ = step;
    std::set<std::uint64_t> generations;
    for (std::size_t r = 0; r < ranks_.size() && begun_step_ != 0; ++r) {
        copy_shelf::copy newest;
        for (auto const& one : ranks_[r].file->find(ranks_[r].part)->slots)
            if (one.whole && one.what.step == begun_step_ && one.what.number > newest.number) newest = one.what;
        generations.insert(newest.by.generation);
        if (newest.by.rank != r && newest.by.world_size == ranks_.size())
            fail(fmt::format("rank {} goes on from what rank {} has committed", r, newest.by.rank));
    }
    if (generations.size() > 1) fail("ranks go on from commits of different generations");
    tell("ranks: all begin at step {}", begun_step_);
    check_beginning(begun_step_, generations.empty() ? 0 : *generations.begin());
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        ranks_[r].step = begun_step_;
        after(of_.step_s + dice_.seconds(0, 0.05), what::rank_commits, static_cast<int>(r), ranks_[r].calls);
    }
}

void kept_run::commit(int rank) {
    auto& its = ranks_[static_cast<std::size_t>(rank)];
    std::size_t slot = 0;
    if (its.file) slot = begin_commit(*its.file, its.part, its.step + 1, !its.has_committed);
    if (slot == kept::slots && story_ != nullptr) tell_slots();
    if (slot == kept::slots) return fail("a rank finds no room for a commit, since all are held");
    after(dice_.seconds(0.0005, 0.02), what::commit_ends, rank, its.calls, slot);
}

void kept_run::end_rank(int rank) {
    auto& its = ranks_[static_cast<std::size_t>(rank)];
    its.lives = false;
    if (its.file && its.has_begun) its.file->at(its.part).owner = -1;
    its.file.reset();
}

void kept_run::end_generation(end_kind kind, int code, bool from_outside, std::vector<std::string> lost) {
    phase_ = run_phase::ends;
    tell("launcher: generation {} ends", present_.number);
    lost_hosts_.insert(lost_hosts_.end(), lost.begin(), lost.end());
    bool const measured = std::any_of(ranks_.begin(), ranks_.end(), [&](auto const& one) { return one.step > begun_step_; });
    generation_end end{.number = present_.number,
                       .kind = kind,
                       .code = code,
                       .lost_hosts = std::move(lost),
                       .lived_s = now_ - began_s_,
                       .at_s = now_};
    end.standstill = find_standstill({.code = code,
                                      .from_outside = from_outside || kind == end_kind::node,
                                      .measured = measured,
                                      .measured_before = measured_},
                                     false);
    if (measured && !end.standstill.empty()) fail("a generation that has committed is said to have made no progress");
    measured_ = measured_ || measured;
    ends_.push_back(std::move(end));
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        after(dice_.seconds(0.001, 0.3), what::rank_dies, static_cast<int>(r), ranks_[r].calls);
    after(0.31, what::launcher_decides);
}

void kept_run::decide() {
    check_end();
    auto const decision = decide_restart({.most = of_.restarts}, ends_, 0.5);
    if (!decision.again) {
        auto const restarts = static_cast<int>(ends_.size()) - 1;
        bool const alike = ends_.size() >= 3 && ends_.back().at_s - ends_[ends_.size() - 3].at_s <= 60 &&
                           std::all_of(ends_.end() - 3, ends_.end(), [&](auto const& one) {
                               return one.code == ends_.back().code && one.kind == ends_.back().kind;
                           });
        bool const idle = ends_.size() >= 2 && !ends_.back().standstill.empty() && !ends_[ends_.size() - 2].standstill.empty();
        if (restarts < of_.restarts && !alike && !idle) fail("the run ends, and a restart is left: " + decision.why);
        return end_run(decision.why);
    }
    auto choice = next_generation(pool_, present_, {.least = of_.least, .most = of_.nodes * of_.per_node, .restart = true},
                                  {.lost_hosts = lost_hosts_});
    if (choice.next != generation_choice::step::change) return end_run(choice.why);
    present_ = std::move(choice.then);
    phase_ = run_phase::waits;
    after(decision.delay.count(), what::launcher_places);
}

void kept_run::place() {
    wire::place_states where;
    std::vector<std::vector<int>> ranks;
    int rank = 0;
    for (auto const& one : present_.members) {
        if (where.hosts.empty() || where.hosts.back() != one.at.host) where.hosts.push_back(one.at.host), ranks.emplace_back();
        ranks.back().push_back(rank++);
    }
    where.ranks = pack_ranks(ranks);
    where.world_size = rank;
    phase_ = run_phase::places;
    ++asked_;
    leader_sign_s_ = now_;
    after(0.1, what::launcher_waits, asked_);
    if (leader_ && !leader_stopped_) feed(happened::request{where});
    if (leader_stopped_) leader_lost_since_ = true;
}

void kept_run::end_run(std::string const& why) {
    tell("launcher: the run ends: {}", why);
    phase_ = run_phase::over;
}

// ------------------------------------------------------------------------------------------------ what has to hold

/// By keepers that live; what ranks alone have open is gone with them.
std::vector<seen_copy> kept_run::copies_there() const {
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

/// The generation and step of the newest commit of all ranks of a generation.
std::pair<std::uint64_t, std::uint64_t> kept_run::newest_whole(std::vector<seen_copy> const& all) const {
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

/// For a story: what each keeper has.
void kept_run::tell_slots() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (!nodes_[i].keeper) continue;
        for (bool const others : {false, true})
            for (auto const& part : (others ? nodes_[i].keeper->of_others : nodes_[i].keeper->own).file()->parts) {
                std::string text;
                for (auto const& slot : part.slots)
                    text += fmt::format(" {}{}{}", slot.what.step, slot.whole ? "" : "~", slot.what.held ? "h" : "");
                tell("  node {}{} part {} wanted {}:{}", i, others ? " for others" : "", part.number, part.wanted, text);
            }
    }
}

/// Nothing has been amiss since the ranks were placed.
bool kept_run::is_quiet() const {
    for (auto const& one : of_.faults) {
        bool const lasting = one.what >= kept_fault::kind::memory_full;
        double const until_s = one.what == kept_fault::kind::cut ? now_ : one.at_s + (lasting ? one.lasts_s : 0);
        if (one.at_s <= now_ && until_s >= placed_s_ - 1) return false;
    }
    auto const whole = [](node const& one) { return !one.lives || (one.keeper && !one.keeper->stopped); };
    return leader_ && !leader_stopped_ && std::all_of(nodes_.begin(), nodes_.end(), whole) &&
           std::count_if(nodes_.begin(), nodes_.end(), [](node const& one) { return one.lives; }) >= 2;
}

/// What all have begun with is on two nodes before they commit anew.
void kept_run::check_spread() {
    if (steps_made_ == 1 && begun_step_ != 0 && of_.to_neighbours && of_.step_s > 0.9 && common_ == 0 && is_quiet())
        fail("what the ranks have begun with is on one node only");
}

/// What was on two nodes has outlived one fault.
void kept_run::check_end() {
    seen_ = copies_there();
    all_ended_s_ = now_;
    auto const whole = newest_whole(seen_);
    std::erase_if(seen_, [&](seen_copy const& one) { return nodes_[one.node].keeper->stopped; });
    tell("(whole: commit {} of generation {}; on two nodes {}; faults since {})", whole.second, whole.first, common_,
         faults_since_common_);
    if (of_.to_neighbours && common_ != 0 && story_ && whole.second < common_) tell_slots();
    if (of_.to_neighbours && common_ != 0 && faults_since_common_ <= 1 && !leader_lost_since_ && whole.second < common_ &&
        leader_)
        fail(fmt::format("commit {} was on two nodes, and is lost by one fault", common_));
}

/// No earlier than the newest commit that was whole, apart from nodes that have had a fault since.
void kept_run::check_beginning(std::uint64_t step, std::uint64_t generation) {
    if (present_.number == 0 || leader_lost_since_) return;
    std::erase_if(seen_, [&](seen_copy const& one) {
        auto const& its = nodes_[one.node];
        return its.touched_s >= all_ended_s_ || !its.lives || !its.keeper || its.incarnation != one.incarnation;
    });
    for (auto const& one : present_.members) {  // what they cannot be given
        auto const& its = nodes_[static_cast<std::size_t>(one.at.host[1] - '0')];
        if (its.touched_s >= all_ended_s_ || !its.keeper || its.keeper->stopped) return;
    }
    auto const whole = newest_whole(seen_);
    if (std::pair(generation, step) < whole)
        fail(fmt::format("the ranks begin at commit {} of generation {}, and commit {} of generation {} was whole", step,
                         generation, whole.second, whole.first));
}

}  // namespace

outcome simulate(kept_schedule const& of, std::vector<std::string>* story) {
    return kept_run(of, story).go();
}

}  // namespace muster::simulation
