// The simulated keepers and their leader hold the states of simulated ranks: the real machines, with simulated memory, processes and network.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "course.hpp"
#include "launch/keep/machines/keeper_duties.hpp"
#include "launch/keep/machines/keeping.hpp"
#include "launch/keep/machines/placing.hpp"
#include "schedule.hpp"
#include "simulated_memory.hpp"

namespace muster::simulation {

class simulated_keeping {
  public:
    simulated_keeping(schedule const& of, course& its);

    void start_leader();
    void handle(occurrence const& one);
    void befall(fault const& one);
    void lose_host(std::size_t which);

    // the launcher
    void ask(wire::place_states const& where);
    /// Nothing: it is an old answer, or the leader says that it is at it.
    std::optional<wire::states_placed> hear(occurrence const& one);
    /// What is known of the leader after a while; one that is not awaited has been ended.
    leader_state wait(occurrence const& one);
    bool is_asked(int request) const { return request == asked_; }

    // the ranks
    /// The memory that a rank finds as it opens it.
    std::shared_ptr<memory_file> open(std::size_t host, bool is_placed);
    void look_soon(std::size_t host);

    // what has to hold
    std::uint64_t on_two_nodes() const { return common_; }
    /// A rank, where it runs and keeps what it commits.
    struct keeping_rank {
        std::size_t host;
        std::shared_ptr<memory_file> file;
        int part;
    };
    /// A commit of theirs, `first` or a later one, has come to two nodes after this time, and is there; or none ever will.
    bool is_spread(std::vector<keeping_rank> const& ranks, std::uint64_t first, double since_s) const;
    /// Nothing has been amiss since this time.
    bool is_quiet_since(double since_s) const;
    void check_end(std::vector<std::string> const& hosts);
    /// The ranks begin, on these hosts, with what a generation has committed.
    /// `any`: they take what one of them finds, where not all find the same.
    void check_beginning(std::uint64_t step, std::uint64_t generation, std::vector<std::string> const& hosts, bool any);
    void tell_slots();

  private:
    /// A process that keeps for one node.
    struct keeper_process {
        explicit keeper_process(std::uint64_t first_id)
            : own(make(first_id)), of_others(make(first_id + 1)), duties(own, of_others) {}
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
        int placed = 0;       ///< the incarnation whose memory the ranks are told of
        bool lives = true, cuts_next = false;
        double full_until_s = -1, no_start_until_s = -1;
        double touched_s = -1;                                ///< when it, or its keeper, had a fault last
        double to_keeper_s = 0, from_keeper_s = 0;            ///< when the last word arrives
        std::vector<std::weak_ptr<memory_file>> opened = {};  ///< by ranks
    };
    /// A copy that is there as all ranks end.
    struct seen_copy {
        std::size_t node;
        int incarnation;  ///< of the keeper
        copy_shelf::copy what;
    };
    /// What is on its way.
    struct mail {
        wire::keep_order order = {};
        wire::keep_word word = {};
        keeping::happened::timer_fired timer = {};
        keeper_duties::send copies = {};
        wire::states_placed placed = {};
        std::string why = {};
    };

    std::size_t post(mail one) {
        mail_.push_back(std::move(one));
        return mail_.size() - 1;
    }
    double delay() { return its_.dice_.seconds(0.0005, its_.dice_.one_in(10) ? 0.3 : 0.01); }
    void note_memory_fault(std::size_t which);
    int count_impaired(std::vector<std::string> const& hosts) const;
    void feed(decltype(keeping::event::what) event);
    void perform(keeping::effect const& deed);
    void start_keeper(std::size_t which);
    void end_keeper(std::size_t which, double seen_within_s);
    void take(std::size_t which, wire::keep_order const& order);
    void carry_out(std::size_t which, std::vector<keeper_duties::duty> duties);
    void say(std::size_t which, wire::keep_word word);
    void end_copies(std::size_t from, mail const& what, int sending);
    std::string put(std::size_t to, copy_shelf::copy const& one, bool for_neighbour);
    bool is_slow() const;
    bool can_ever_spread(std::vector<keeping_rank> const& ranks) const;
    std::vector<seen_copy> copies_there() const;

    schedule const& of_;
    course& its_;
    std::deque<mail> mail_;
    std::vector<node> nodes_;
    std::unique_ptr<keeping::world> leader_;
    int leaders_ = 0;  ///< so far: words and timers of earlier ones count for nothing
    bool leader_stopped_ = false, stepping_ = false;
    std::deque<keeping::event> events_;
    std::vector<std::pair<what, std::size_t>> unread_;  ///< of a leader that is stopped
    double leader_sign_s_ = 0, leader_went_on_s_ = -1e9;
    std::uint64_t ids_ = 0;
    int asked_ = 0;  ///< requests so far

    std::vector<std::string> hosts_;  ///< that have ranks
    std::uint64_t common_ = 0;        ///< of which the leader knows that it is on two nodes
    double common_since_s_ = 0;
    int faults_since_common_ = 0;  ///< that cost memory
    bool leader_lost_since_ = false;
    double all_ended_s_ = 0;
    std::vector<seen_copy> seen_;  ///< as all ranks ended last
};

}  // namespace muster::simulation
