// The link of a rank to its launcher in an elastic run: hears of ranks that are lost, and of the next generation.
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

/// Hands the launcher's words to member_view, which says what they mean. One per process, from its first communicator to the end of the process; its own thread reads the messages. Thread safe.
class member_link {
  public:
    /// By MUSTER_EVENTS of `variables`; null where there is no such socket. Asks the launcher who this rank is, which blocks a newcomer until its generation
    /// begins, and ranks on several nodes until all have told their `address` (tcp_address(); empty on one node). The process' children do not inherit the descriptor; those of fork() close it. Never destroyed: its thread uses it to the end.
    static member_link* open(environment const& variables, std::string address = {});
    ~member_link() = delete;

    /// The generation that this rank is in, or was in last.
    elastic::generation now() const;

    /// For a communicator of the present generation, or of these of its ranks: is told what is lost of them, and when the next generation begins.
    std::shared_ptr<peer_loss> watch(std::span<int const> members = {});

    /// Whether ranks of that generation are lost, or it is over. Waits for so long for the word.
    bool is_broken(int generation, duration patience = duration(0));

    /// See elastic::announce.
    void announce();

    /// Waits for the generation after the present one, which this rank has left: no communicator of it is used any more. Throws errc::timeout after
    /// `deadline`, errc::unavailable where the launcher ends the run or is gone, and errc::usage in a child of fork(). Rank -1: this rank has no part in it,
    /// and is to end.
    elastic::generation reform(bool has_state, bool at_commit, duration deadline);

    /// What has changed since the last call.
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
    mutable std::mutex guard_;  // of what follows
    std::condition_variable changed_;
    member_view view_;
    std::vector<watched> watched_;  ///< of the present generation
};

}  // namespace muster
