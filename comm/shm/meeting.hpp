// How the ranks of a node find each other and the memory that they share, without MPI.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"
#include "comm/process_watch.hpp"
#include "comm/world_check.hpp"

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
class meeting {
  public:
    /// Collective. Throws, with the same message on every rank that can still hear it, comm_error: errc::timeout if ranks do not
    /// come before the deadline (rank 0's message names them), errc::peer_failed if one ended while they met or two contradict
    /// each other, errc::singleton if they count differently (see check_world); and errc::system.
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
        world_record record;
        bool introduced = false;
    };
    void receive_visitors();
    void accept_one(int listener);
    void listen_to(visitor& from);
    void visit();
    void await(int socket, std::string_view for_what);
    template <typename Message>
    Message hear_rank_0(std::string_view for_what);
    [[noreturn]] void call_off(errc code, std::string const& why);
    std::string name_missing() const;
    bool all_are_here() const;
    std::string contradiction() const;

    meeting_request request_;
    double until_ = 0;               // of the steady clock, seconds
    std::vector<visitor> visitors_;  // on rank 0
    unique_fd to_rank_0_;            // on the others
    process_name rank_0_;
    std::vector<world_record> records_;
    unique_fd memory_;
};

}  // namespace muster::shm
