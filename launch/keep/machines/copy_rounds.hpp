// The rounds in which a commit of all ranks is copied to the next nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster {

/// In a round every rank holds the same commit, each node sends those of its ranks to the next node, and when all are whole there
/// all ranks can go back to that commit after the loss of a node. Until then they can go back to that of the round before. Ranks
/// go on committing meanwhile, perhaps faster than orders reach them all: then a later commit is ordered, farther ahead the more
/// often that has failed. Pure: take_orders() returns the orders.
class copy_rounds {
  public:
    struct order {
        enum class kind { hold, send, release };
        std::size_t node = 0;
        kind what = kind::hold;
        std::uint64_t round = 0;
        std::uint64_t step = 0;
        std::size_t to = 0;  ///< the node for `send`
        bool operator==(order const&) const = default;
    };

    explicit copy_rounds(std::size_t nodes) : nodes_(nodes) {}

    /// `expected`: it has ranks whose next commit is awaited.
    void on_there(std::size_t node, bool expected = false);
    void on_lost(std::size_t node);
    /// All ranks of this node have committed `step`; 0: a rank has not.
    void on_newest(std::size_t node, std::uint64_t step);
    /// The last rank has ended: its first commit is no longer awaited.
    void on_no_ranks(std::size_t node);
    /// Says what the ranks of a node hold: this many copies of a commit, of this many ranks of this generation.
    struct share {
        std::uint64_t generation = 0;
        int ranks = 0, world_size = 0;
    };
    void on_held(std::size_t node, std::uint64_t round, std::uint64_t step, share const& of);
    void on_sent(std::size_t node, std::uint64_t round, bool whole);
    /// The round takes too long: ranks have stopped committing, or a node is slow.
    void on_late(std::uint64_t round);
    /// Ends the round in progress; no round begins until `go_on`, with ranks on these nodes. `step` is what all begin with, if it is
    /// not 0: `holders`, if any, copy it at once, and once more where that fails, until a later commit exists.
    void pause();
    void go_on(std::uint64_t step, std::vector<bool> const& have_ranks, std::vector<bool> const& holders = {});

    std::vector<order> take_orders();
    std::uint64_t round() const noexcept { return round_; }
    bool holding() const noexcept { return phase_ == phase::holding; }
    std::uint64_t last() const noexcept { return last_; }  ///< all can go back to this commit; 0: there is no such commit
    std::uint64_t on_two_nodes() const noexcept { return on_two_nodes_; }  ///< the newest commit on two nodes; or 0

    /// The state of one node. The transitions are in copy_rounds.cpp.
    enum class standing {
        gone,
        awaited,  ///< its ranks have not committed since they began
        there,
        asked,  ///< it takes part in the round and has to answer
        done,   ///< it has answered
    };
    enum class node_event { comes, comes_with_ranks, is_lost, tells, is_asked, answers, is_released, ranks_begin, no_ranks };

  private:
    enum class phase { idle, holding, sending, spreading, paused };  ///< spreading: the commit with which all have begun
    struct node {
        standing now = standing::gone;
        std::uint64_t newest = 0, held = 0;
        int told = 0;  ///< commits that its ranks have reported while others were awaited
        bool ranks_ended = false;
        share of = {};
        bool is_there() const noexcept { return now >= standing::awaited; }
        bool takes_part() const noexcept { return now >= standing::asked; }
    };
    static bool change(node& one, node_event on);
    void begin_again();
    void await_all_anew();
    bool awaits_any();
    void spread_last();
    bool is_to_spread_again() const;
    void try_begin();
    static constexpr std::size_t nobody = SIZE_MAX;
    void fail(std::size_t but = nobody);
    void release(std::uint64_t step, std::size_t but = nobody);
    void send_if_all_hold();
    std::size_t next_of(std::size_t node) const;
    bool all_done() const;
    bool is_whole() const;
    bool is_under_way() const noexcept {
        return phase_ == phase::holding || phase_ == phase::sending || phase_ == phase::spreading;
    }

    std::vector<node> nodes_;
    /// The nodes that hold of `last_`, with which all have begun, what the next ones have to get.
    std::vector<std::size_t> have_first_;
    std::vector<order> orders_;
    phase phase_ = phase::idle;
    std::uint64_t round_ = 0, last_ = 0, ahead_ = 0;
    std::uint64_t on_two_nodes_ = 0;
    std::uint64_t vain_ = 0;  ///< no commit up to this is whole: some of its ranks have ended
    bool late_ = false;
};

}  // namespace muster
