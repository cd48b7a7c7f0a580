// The link of a rank to its launcher in an elastic run. It learns which ranks are lost, and of the next generation.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"
#include "comm/backend/comm_options.hpp"
#include "comm/backend/processes/rank_processes.hpp"
#include "comm/membership/member_view.hpp"
#include "pmix/member_message.hpp"

namespace muster {

/// Passes the launcher's messages to member_view, which interprets them. One per process, from its first communicator to the end of the process; its own thread reads the messages. Thread safe.
class member_link {
  public:
    /// Opens the socket in MUSTER_EVENTS of `variables`; null if there is no such socket. Asks the launcher who this rank is, which blocks a newcomer until its generation begins, and ranks on several nodes until all have given their `address`
    /// (tcp_address(); empty on one node). The process's children do not inherit the descriptor; those of fork() close it. Never destroyed: its thread uses it to the end.
    static member_link* open(environment const& variables, std::string address = {});
    ~member_link() = delete;

    /// Returns the generation that this rank is in, or was in last.
    elastic::generation now() const;

    /// For a communicator of the present generation, or of these of its ranks: the result reports its lost ranks, and the next generation.
    std::shared_ptr<peer_loss> watch(std::span<int const> members = {});

    /// Returns whether ranks of that generation are lost, or it is over. Waits up to `patience` for that message.
    bool is_broken(int generation, duration patience = duration(0));

    /// See elastic::announce.
    void announce();

    /// Waits for the generation after the present one, of which no communicator may be used any more. Throws errc::timeout after `deadline`,
    /// errc::unavailable if the launcher ends the run or is gone, and errc::usage in a child of fork(). Rank -1 in the result: this rank has no part in it,
    /// and should end.
    elastic::generation reform(bool has_state, bool at_commit, duration deadline);

    /// Returns what has changed since the last call.
    elastic::hosts_changed take_host_changes();

  private:
    explicit member_link(unique_fd socket) : socket_(std::move(socket)) {}
    struct watched {
        std::weak_ptr<peer_loss> what;
        std::vector<int> members;
    };
    void send(elastic::message const& what);
    void listen();
    bool receive(std::string& packet) const;
    void take(elastic::message const& what);
    static void tell(watched const& one, std::string_view why, std::vector<int> const& ranks);
    void check_process() const;

    detail::process_mark const process_;
    unique_fd const socket_;
    mutable std::mutex guard_;  // guards what follows
    std::condition_variable changed_;
    member_view view_;
    std::vector<watched> watched_;  ///< of the present generation
};

}  // namespace muster
