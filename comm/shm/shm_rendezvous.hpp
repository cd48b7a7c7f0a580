// How the ranks of a node find each other and the memory that they share, without MPI.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"
#include "comm/backend/process_watch.hpp"
#include "comm/backend/world_record.hpp"

namespace muster::shm {

struct meeting_request {
    std::string key;  ///< the same on all ranks and on no others of this machine, at most 80 bytes
    world_record self;
    std::string host;   ///< of this rank, for messages
    duration deadline;  ///< 0 is without end
    std::size_t bytes;  ///< of the shared memory
};

/// A meeting that took place. Rank 0 listens on a socket with an abstract name, which exists nowhere in the file system and
/// vanishes with its process; the others connect, say who they are, and get a memory file without a name. So nothing can be left
/// behind, whoever dies when. Both ends ask the kernel whose process the other one is and refuse another user's.
///
/// Whoever's deadline passes first ends the meeting: rank 0, who alone knows who is missing, is told and tells all. If it is rank
/// 0 that does not answer, the others say so. Where rank 0 calls the meeting off, whoever comes later is told why too, for as
/// long as rank 0's process lives and another deadline has not passed (rank 0 itself waits for them for at most a second).
class meeting {
  public:
    /// Collective. Throws comm_error with the same culprits on every rank: errc::timeout naming the ranks that did not come
    /// before the deadline, errc::peer_failed naming the one that ended while they met; errc::peer_failed if two contradict each
    /// other, errc::singleton if they count differently (see check_world), both without culprits; and errc::system.
    explicit meeting(meeting_request request);

    /// What each rank said of itself, in their order.
    std::vector<world_record> const& records() const noexcept { return records_; }

    /// The memory, zeroed.
    int memory_file() const noexcept { return memory_.get(); }

    /// Collective: whether all ranks say yes. Everything a rank wrote to the memory before is seen by all after. Throws as the
    /// constructor.
    bool agree(bool yes);

  private:
    struct visitor {
        unique_fd socket;
        process_name who;
        std::optional<int> rank;  ///< by the name of its socket, before it has said anything
        world_record record;
        bool introduced = false;
        bool left = false;  ///< before anybody knew which rank it was
        bool voted = false;
    };
    struct named_ranks {
        std::vector<int> ranks;
        std::string text;
    };
    void receive_visitors();
    void wait_for_visitors();
    void hand_out_memory();
    void accept_one();
    void listen_to(visitor& from);
    void wait_for_votes(bool& yes);
    void hear_vote(visitor& from, bool& yes);
    bool all_are_here() const;
    bool all_have_voted() const;
    std::string contradiction() const;
    named_ranks missing_visitors() const;
    named_ranks missing_voters(int but) const;
    [[noreturn]] void end_by_deadline(named_ranks const& missing, std::string_view did_not, visitor const* whose);
    [[noreturn]] void end_by_leaving(visitor const& who);
    [[noreturn]] void call_off(errc code, std::string const& why, std::vector<int> const& culprits);
    void tell_latecomers(errc code, std::string const& why, std::vector<int> const& culprits);

    void visit();
    void connect_to_rank_0();
    void await_rank_0();
    template <typename Message>
    Message hear_rank_0();
    [[noreturn]] void blame_rank_0(errc code, std::string_view what) const;

    std::string speaker() const;

    meeting_request request_;
    double until_ = 0;  // of the steady clock, seconds
    unique_fd listener_;
    std::vector<visitor> visitors_;  // on rank 0
    unique_fd to_rank_0_;            // on the others
    process_name rank_0_;
    std::vector<world_record> records_;
    unique_fd memory_;
};

}  // namespace muster::shm
