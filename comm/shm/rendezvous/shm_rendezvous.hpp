// The rendezvous of the ranks of one node. Gives each of them the shared memory and every rank's record, without MPI.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"
#include "comm/backend/comm_options.hpp"
#include "comm/backend/processes/process_watch.hpp"
#include "comm/backend/world_record.hpp"

namespace muster::shm {

// Waits of a rendezvous until a time of the steady clock.

/// Rank 0, if it is not stopped, has this long to answer a rank whose deadline has passed. It also waits this long for ranks that
/// come after the rendezvous has failed.
inline constexpr double grace_s = 1.0;

/// Returns the time of the steady clock in seconds.
double now_s();

/// Returns the time left for poll(): at most 1000 s, -1 (no end) for infinity.
int milliseconds_until(double when);

/// Returns false if nothing came by then. Throws errc::system.
bool wait_readable(int socket, double until);

/// A wait looks this often whether ranks are reported as gone, in seconds.
inline constexpr double between_looks_s = 0.005;

struct rendezvous_request {
    std::string key;  ///< the same on all ranks and on no others of this machine, at most 80 bytes
    world_record self;
    std::string host;                      ///< of this rank, for messages
    duration deadline;                     ///< 0 waits without end
    std::size_t bytes;                     ///< of the shared memory
    std::shared_ptr<peer_loss> loss = {};  ///< see comm_options
};

/// A rendezvous that took place. Rank 0 listens on a socket with an abstract name, which exists nowhere in the file system and
/// vanishes with its process; the others connect, send their records, and get a memory file without a name. So nothing is left
/// behind when ranks die. Both ends ask the kernel whose process the other one is and refuse another user's; if another user
/// holds the name, rank 0 takes the next of a few, which the others try in turn.
///
/// The deadline that passes first ends the rendezvous. Only rank 0 knows which ranks are missing: the rank whose deadline passed
/// tells rank 0, which tells all. If rank 0 does not answer, the others say so. A rank that comes after the rendezvous has failed
/// learns the reason too, as long as rank 0's process lives and another deadline has not passed; rank 0 itself waits for such
/// ranks for at most a second.
class shm_rendezvous {
  public:
    /// Collective. Throws comm_error with the same culprits on every rank: errc::timeout naming the ranks that did not come
    /// before the deadline, errc::peer_failed naming the one that ended while they met; errc::peer_failed if two contradict each
    /// other, errc::singleton if they count differently (see check_world), both without culprits; and errc::system.
    explicit shm_rendezvous(rendezvous_request request);

    /// Returns every rank's record, by rank.
    std::vector<world_record> const& records() const noexcept { return records_; }

    /// Returns the file of the memory, which is zeroed.
    int memory_file() const noexcept { return memory_.get(); }

    /// Returns whether the process numbers that the ranks sent are those that the kernel has for the other ends of their sockets:
    /// not so in separate PID namespaces. Rank 0 sees all others, the others see rank 0.
    bool numbers_are_right() const;

    /// Collective. Returns whether all ranks give true. What a rank wrote to the memory before the call, all see after it. Throws
    /// as the constructor does.
    bool all_say_yes(bool yes);

  private:
    /// Another rank, as rank 0 knows it.
    struct peer {
        unique_fd socket;
        process_name who;
        std::optional<int> rank;  ///< from the name of its socket, before its first message
        world_record record;
        bool introduced = false;
        bool left = false;  ///< before anybody knew which rank it was
        bool voted = false;
    };
    struct named_ranks {
        std::vector<int> ranks;
        std::string text;
    };
    void run_as_rank_0();
    void listen_for_peers();
    void wait_for_peers();
    void hand_out_memory();
    void accept_one();
    void receive_from(peer& from);
    void wait_for_votes(bool& yes);
    void receive_vote(peer& from, bool& yes);
    bool all_are_here() const;
    bool all_have_voted() const;
    std::string contradiction() const;
    named_ranks missing_peers() const;
    named_ranks missing_voters(int but) const;
    [[noreturn]] void fail_by_deadline(named_ranks const& missing, std::string_view did_not, peer const* whose);
    [[noreturn]] void fail_by_loss(peer const& who);
    [[noreturn]] void fail_on_all(errc code, std::string const& why, std::vector<int> const& culprits);
    void refuse_latecomers(errc code, std::string const& why, std::vector<int> const& culprits);

    void run_as_peer();
    void connect_to_rank_0();
    bool connect_to_rank_0_at(std::string const& name, bool& others);
    void await_rank_0();
    bool is_readable_by(int socket, double until) const;
    double next_look() const;
    void throw_if_lost() const;
    template <typename Message>
    Message receive_from_rank_0();
    [[noreturn]] void blame_rank_0(errc code, std::string_view what) const;

    std::string speaker() const;

    rendezvous_request request_;
    double until_ = 0;  // of the steady clock, seconds
    unique_fd listener_;
    std::vector<peer> peers_;  // on rank 0
    unique_fd to_rank_0_;      // on the others
    process_name rank_0_;
    std::vector<world_record> records_;
    unique_fd memory_;
};

}  // namespace muster::shm
