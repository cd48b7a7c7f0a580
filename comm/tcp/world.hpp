// The world of ranks over TCP holds this rank's connections, made when they are first needed, and what it knows of ranks that are gone.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/processes/process_watch.hpp"
#include "comm/tcp/line.hpp"
#include "comm/tcp/listener.hpp"

namespace muster::tcp {

/// The members of a world, as a rank knows them.
struct membership {
    std::string name;  ///< the same on its ranks, and different for other worlds
    int rank = 0;
    std::vector<endpoint> ranks;          ///< by rank
    std::vector<process_name> processes;  ///< by rank; empty while they are not known
    std::vector<std::string> hosts;       ///< by rank
    std::string interface;                ///< of this rank's listener
    int direct_ranks = 16;                ///< comm_options::direct_ranks
};

/// Memory for incoming data, used again and again.
class scratch_memory {
  public:
    struct piece {
        std::unique_ptr<std::byte[]> bytes;
        std::size_t size = 0;
    };
    piece take(std::size_t bytes);
    void put_back(piece what);

  private:
    std::vector<piece> free_;
};

/// One thread at a time. Of two ranks the lower dials; the higher, if it needs the connection and it does not come, asks the lower one to
/// dial. A failed attempt is repeated, at each address of the other rank, unless all of them refuse: nothing listens there any more.
class world {
  public:
    using clock = std::chrono::steady_clock;

    explicit world(membership members);
    world(world const&) = delete;
    world& operator=(world const&) = delete;

    int rank() const noexcept { return members_.rank; }
    int size() const noexcept { return static_cast<int>(members_.ranks.size()); }
    membership& members() noexcept { return members_; }
    membership const& members() const noexcept { return members_; }
    scratch_memory& scratch() noexcept { return scratch_; }
    std::string name_of(int other) const;  ///< "rank 3 on n1"

    /// Messages are in a fixed order for each other rank, the same on both ends. See line.
    void send(int to, ticket owner, frame const& head, std::byte const* data, transfers& counts);
    void receive(int from, ticket owner, frame const& head, std::byte* to, transfers& counts);

    /// Moves connections and messages forward without blocking.
    void pump();

    /// Sleeps until something can be moved forward, for at most this long.
    void sleep(std::chrono::milliseconds at_most) noexcept;

    /// Returns whether a connection has ended, or a rank gave up: ask culprits().
    bool is_harmed() const noexcept { return harmed_; }
    bool waits_for(int other, ticket owner) const { return at(other).wire.waits_for(owner); }
    bool has_met(int other) const noexcept { return at(other).wire.is_open() || at(other).wire.ended() != line::end::none; }
    bool gave_up(int other) const noexcept { return at(other).wire.ended() == line::end::gave_up; }

    /// Returns the ranks because of which `owner` cannot finish, in ascending order.
    std::vector<late_rank> culprits(ticket owner) const;
    /// Returns the ranks blamed by those that gave up, whether or not a collective of this rank waits for them.
    std::vector<late_rank> reports() const;
    /// Returns the other ranks that it waits for now; if one of them waits for others itself, and has said so, these others.
    std::vector<late_rank> awaited(ticket owner) const;
    /// Tells the ranks that may wait for this one in the collective with this header.
    void tell_awaited(frame const& in, std::vector<late_rank> const& late);
    /// Returns the link to the first rank that is in another collective than `owner`.
    line const* disagreement(ticket owner, int& with) const;

    /// Drops all messages: the memory of collectives is no longer in use. Tells all ranks that it is connected to whom it blames, and waits, at most a second,
    /// until they have it. Call it once.
    void give_up(std::vector<late_rank> const& blamed) noexcept;
    /// Tells them that this rank has left properly.
    void leave() noexcept;

  private:
    struct attempt {
        enum class phase { idle, connecting, greeted };
        phase where = phase::idle;
        unique_socket socket;
        greeting what;
        greeting_text text{};
        std::array<unsigned char, answer_bytes> answer{};
        std::size_t got = 0;
        std::size_t address = 0, refused = 0;
        clock::time_point since, next;
        std::string fault;  ///< of the last attempt
    };
    struct peer {
        line wire;
        bool wanted = false;
        clock::time_point wanted_since;
        attempt calling;
        std::optional<shared_key> key;
    };
    struct caller_so_far {
        int from = 0;
        unique_socket socket;
        greeting_text text{};
        nonce of_called{};
        key_proof got{};
        std::size_t received = 0;
        clock::time_point since;
    };
    peer& at(int other) noexcept { return *peers_[static_cast<std::size_t>(other)]; }
    peer const& at(int other) const noexcept { return *peers_[static_cast<std::size_t>(other)]; }
    void reach(int other);
    void link(int other, unique_socket socket);
    shared_key const& key_of(int other);
    void advance_links();
    void hear_callers();
    void admit(caller come, clock::time_point now);
    bool hear(caller_so_far& one);
    void call(int other, clock::time_point now);
    void start_call(int other, clock::time_point now);
    void finish_connect(int other, clock::time_point now);
    void read_answer(int other, clock::time_point now);
    void try_again(int other, clock::time_point now, std::string fault);
    void note_end(peer const& of) noexcept { harmed_ = harmed_ || of.wire.ended() != line::end::none; }
    std::vector<late_rank> blame_of(int other) const;
    std::string why_silent(int other) const;

    membership members_;
    world_id id_;
    rank_listener* listener_;
    std::vector<std::unique_ptr<peer>> peers_;  // by rank; null for this one
    std::vector<int> linked_;                   // in the order in which they came
    std::vector<int> unlinked_;                 // wanted, and not there yet
    std::vector<caller_so_far> unproven_;
    scratch_memory scratch_;
    std::string excuse_;  // the last one sent
    frame excused_;       // … and its collective
    unsigned pumps_ = 0;
    bool harmed_ = false;
    bool over_ = false;
    std::vector<pollfd> polled_;
};

}  // namespace muster::tcp
