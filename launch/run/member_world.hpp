// The world of a run on one node that goes on in place: tells its members who is lost, and begins the next generation with those that are left.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/system/event_loop.hpp"
#include "pmix/identity.hpp"
#include "pmix/member_message.hpp"

namespace muster {

/// Each rank has a socket by which it hears of the others, and says that it wants the next generation. That begins when all that are left do: who is in it
/// says next_generation() alone. Seats are numbers of ranks at the start. Used from the loop's thread.
class member_world {
  public:
    /// What it asks of the group of ranks.
    struct group {
        std::function<pid_t(int seat)> pid;
        std::function<void(int seat)> kill;
        std::function<void(std::string const& line)> say;
        /// The generation begins; `seats` by rank.
        std::function<void(generation const& now, std::vector<int> const& seats, std::string const& why)> begin;
        /// Starts a rank that takes the place of the one of that seat, with this end of its socket, and returns its own seat: the next one.
        std::function<int(int seat, int descriptor)> start;
        /// Too few are left.
        std::function<void(std::string const& why)> give_up;
    };
    /// All must outlive it. `ranks`: who each is at the start, where each goes on with its own member.
    member_world(event_loop& loop, run_context const& run, std::vector<identity> ranks, group calls);

    /// For the rank of that seat, which is about to be started.
    int child_fd(int seat) const { return seats_[static_cast<std::size_t>(seat)].theirs.get(); }
    /// The ranks have been started.
    void start();

    /// The rank of that seat has ended: well (with code 0), or it is lost for the reason `why`. To be called for all that have ended before anything else is
    /// done about them.
    void note_end(int seat, bool well, std::string const& why);
    /// Tells the others of those that are lost.
    void tell_lost();
    /// Whether those that are left can go on without the lost ones; else why not, or an empty text where the program has not said that it could.
    bool can_go_on(std::string& why_not) const;
    /// Those that wait for a generation are told that none comes.
    void close() noexcept;

    generation const& now() const noexcept { return now_; }

  private:
    struct seat {
        unique_fd ours, theirs;
        identity who;
        member of;
        bool announced = false;
        bool wants = false;      ///< the next generation
        bool at_commit = false;  ///< as it said then
        bool ended = false;
        bool stopped = false;  ///< when last looked at
        bool joins = false;    ///< it is no member yet
        bool ready = false;    ///< … and waits to become one
        bool is_member() const noexcept { return !ended && !joins; }
    };
    seat* find(member const& one);
    void replace_lost();
    void welcome(seat& newcomer);
    void on_readable(seat& from);
    void take(seat& from, elastic::message const& what);
    void send(seat& to, elastic::message const& what) const;
    elastic::generation word_for(seat const& of) const;
    void tell(identity const& who, std::string_view what);
    void decide();
    void begin(generation then, std::string const& why);
    void look_after_late();
    bool is_stopped(seat const& one) const;
    int seat_of(seat const& one) const;
    bool anyone_announced() const;
    std::size_t living() const;
    int least() const;

    event_loop& loop_;
    run_context const& run_;
    group calls_;
    std::deque<seat> seats_;
    generation now_;
    int wanted_ = 0;           ///< members
    int spares_ = 0;           ///< ranks that may still be started in place of lost ones
    std::vector<int> lost_;    ///< seats whose slots are free
    std::vector<int> untold_;  ///< members that are lost, and of which the others do not know
    std::string untold_why_;
    bool anyone_lost_ = false;  ///< of now_
    bool left_ = false;         ///< a member has left now_ after a failure
    bool sync_ = false;         ///< the present generation's word on the state
    int port_ = 0;
    std::optional<event_loop::clock::time_point> asked_;  ///< when the first member wanted the next generation
    event_loop::timer look_ = 0;                          ///< since then
};

}  // namespace muster
