// The state machine of the process that leads the keepers: which of them are there, what is copied, and where states go before a
// generation.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "launch/keep/machines/copy_rounds.hpp"
#include "launch/keep/machines/state_arrangement.hpp"
#include "launch/wire/messages.hpp"

namespace muster::keeping {

// Holds plain values and pure functions: no clock, no input or output, no randomness. Times are in seconds on a clock that only
// goes forward.

inline constexpr double between_looks_s = 1;
inline constexpr int most_starts = 5;  ///< for keepers on one node

/// The keeper of one node.
struct node {
    enum class state { awaited, there, due, lost };  ///< due: another has to be started
    std::string name;
    state now = state::awaited;
    std::string why = {};          ///< why it is lost
    std::string untold_loss = {};  ///< the reason, if a note of it is still to come
    wire::keep_word about = {};    ///< as it came
    std::vector<wire::kept_copy> copies = {};
    double heard_s = 0;
    int starts = 0;
    std::uint64_t memory = 0;  ///< the keeper's, or the former one's; 0: no keeper has come yet
    bool took_over = false;    ///< this one has the memory of the former one
};

/// The progress of the arrangement that the launcher has asked for; ended: no launcher is left.
enum class step_of_arrangement { none, awaiting, listing, moving, settling, ended };

struct open_question {
    std::size_t node;
    std::uint64_t number;
    std::size_t about;  ///< the destination of a copy, or the same node
    auto operator<=>(open_question const&) const = default;
};

struct arrangement {
    wire::place_states wanted = {};
    std::vector<std::size_t> node_of = {};  ///< by rank; the number of nodes for a rank without one
    state_arrangement made = {};
    wire::states_placed placed = {};                     ///< the answer, once all keepers have settled
    std::set<open_question> open = {};                   ///< answers that are still to come
    std::map<std::uint64_t, state_move> of_nobody = {};  ///< by question: the moves of what no rank begins with
    std::string not_moved = {};                          ///< why one of the other present moves has failed
    int tries = 0;
};

struct world {
    world(std::vector<std::string> const& names, double lost_after, bool at_neighbours);

    double lost_after_s;
    bool to_neighbours;
    bool can_start = true;  ///< other keepers can start in place of lost ones; set by the caller
    std::vector<node> nodes;
    copy_rounds rounds;
    step_of_arrangement now = step_of_arrangement::none;
    arrangement under_way;
    std::uint64_t question = 0;
    std::uint64_t requests = 0;  ///< the number so far
    double looked_s = 0;
    bool tells = false;      ///< a timer for that is set
    std::uint64_t told = 0;  ///< the last commit that was reported to be on two nodes
    std::string last_fault;  ///< a copy's
};

// ------------------------------------------------------------------------------------------------ events

enum class timer { silence, another_start, another, note_of_loss, failed_copies, round, telling, arrivals };

namespace happened {
struct beginning {};
struct word {
    std::size_t from;
    wire::keep_word what;
};
struct loss {
    std::size_t of;
    std::string why;
};
/// The engine that starts a keeper there has ended, or could not start. It may end long after its keeper.
struct no_start {
    std::size_t of;
    int number;  ///< the start's
    std::string why;
};
struct timer_fired {
    timer which;
    std::size_t node = 0;
    std::uint64_t number = 0;
};
/// A request of the next generation's launcher.
struct request {
    wire::place_states what;
};
struct end {};
}  // namespace happened

struct event {
    double at_s;
    std::variant<happened::beginning, happened::word, happened::loss, happened::no_start, happened::timer_fired,
                 happened::request, happened::end>
        what;
};

// ------------------------------------------------------------------------------------------------ effects

namespace act {
struct order {
    std::size_t to;
    wire::keep_order what;
};
/// Starts keepers. The driver answers with happened::no_start, with the same number, for each that cannot start.
struct start {
    struct one {
        std::size_t node;
        int number;  ///< among the starts on this node
    };
    std::vector<one> whom;
};
struct close {
    std::size_t whose;
};
struct set_timer {
    timer which;
    double after_s;
    std::size_t node = 0;
    std::uint64_t number = 0;
};
struct say {
    std::string line;
    bool if_verbose = false;
};
struct answer {
    wire::states_placed what;
};
}  // namespace act

using effect = std::variant<act::order, act::start, act::close, act::set_timer, act::say, act::answer>;

/// Changes the world; nothing else does. Returns what to do, in this order.
std::vector<effect> step(world& state, event const& what);

inline bool is_awaited(node const& one) noexcept {
    return one.now == node::state::awaited || one.now == node::state::due;
}

}  // namespace muster::keeping
