// The ranks of a run that an engine started, as the launcher knows them from their shims.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/observe/process_sight.hpp"
#include "launch/run/remote/rank_link.hpp"
#include "launch/watch/evidence.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

/// Holds the large data that all ranks share.
struct common_job {
    environment variables;
    std::vector<std::string> command;
    std::vector<std::string> exports;
    std::vector<int> kept_parts;
};

/// Holds what the launcher tells one rank's shim and learns from it; evidence::ranks has what that says about the rank.
struct remote_rank {
    wire::job job;  ///< what it gets, except for `common`; `host` is set when its shim reports it
    std::shared_ptr<common_job const> common;
    int node = 0;    ///< index into the allocation's nodes
    int spare = -1;  ///< its number if it starts as one, which waits for a lost rank's place
    rank_link link;
    wire::ready place;
    std::string step;   ///< the engine's name for its step
    int answered = 0;   ///< the number of the last ping that its shim has answered
    int inspected = 0;  ///< the number of the inspection that `sight` comes from
    process_sight sight;
    bool given_up = false;  ///< the others have gone on without it, and its messages are ignored
};

/// One host of the engine remote, by the number of its agent, which is the rank of its node.
struct remote_host {
    std::shared_ptr<frame_channel> link;  ///< its agent's; null: the agent has not come
    std::vector<int> ranks;
    bool has_job = false;
};

/// All ranks of a run in order of rank, and the hosts that their shims named.
class remote_ranks {
  public:
    /// Each rank has the plan's name for its host. Fills in `known`, which must outlive this.
    remote_ranks(std::vector<remote_rank> ranks, evidence& known);

    auto begin() noexcept { return ranks_.begin(); }
    auto end() noexcept { return ranks_.end(); }
    auto begin() const noexcept { return ranks_.begin(); }
    auto end() const noexcept { return ranks_.end(); }
    std::size_t size() const noexcept { return ranks_.size(); }
    remote_rank& operator[](int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
    rank_evidence const& known(int rank) const { return known_[rank]; }

    /// Returns why this shim cannot be the rank that it claims to be; empty if it can.
    std::string objection_to(wire::hello const& hello, std::string_view engine) const;
    /// Does the same for an agent.
    std::string objection_to_agent(wire::hello const& hello) const;
    /// Records a shim without objections; returns its rank.
    remote_rank& admit(wire::hello const& hello);

    /// Returns all that its shim gets.
    wire::job job_of(remote_rank const& rank) const;
    remote_host& host(int number) { return hosts_.at(static_cast<std::size_t>(number)); }
    std::size_t hosts() const noexcept { return hosts_.size(); }
    /// Adds a rank that is started later, by an agent without other ranks, on the host with that name in the plan. Returns it.
    remote_rank& add(remote_rank rank);
    std::string const& planned_host(remote_rank const& rank) const {
        return planned_hosts_.at(static_cast<std::size_t>(rank.node));
    }
    /// Returns whether the rank comes, or has come, after the others started to run.
    bool is_late(int rank) const noexcept { return rank >= first_late_ && rank < static_cast<int>(ranks_.size()); }
    bool is_late_agent(int number) const noexcept;
    /// Returns whether any rank that the run began with is left.
    bool any_first_here() const;
    /// Returns whether the ranks may go on in place without a lost one.
    bool goes_on_in_place() const noexcept { return !ranks_.empty() && ranks_.front().job.in_place; }
    /// Returns how much output each shim may send ahead.
    std::size_t window() const noexcept { return ranks_.empty() ? 0 : ranks_.front().job.output_window; }
    bool is_on(int rank, int number) const noexcept;
    /// Returns host names that have no address here, of ranks that have not come; an engine's message may hide these.
    std::vector<std::string> unknown_hosts() const;
    /// Returns whether agents carry ranks' messages and this one has not come: then only its ranks are awaited.
    bool awaits_agent_of(int rank) const noexcept;
    /// Returns who has not come, or is not placed yet.
    std::string list_missing() const;
    /// Returns what the user should know about the nodes, once all are ready; mostly empty.
    std::string note_on_places() const;

    /// Returns two ranks of one node with the same GPU, once all are ready; nothing if each has its own.
    std::optional<std::pair<int, int>> find_shared_gpu() const;
    /// Returns the message that starts all ranks, once all are ready.
    wire::go make_go() const;

    void send_all(wire::message const& message);
    /// Ends a rank that the others go on without, if it can be reached, and ignores it from now on.
    void give_up(int rank);
    bool any_given_up() const noexcept;
    /// Returns the ranks as the inspection with this number found them.
    std::vector<rank_row> rows(int inspection) const;

  private:
    void take_in(remote_rank rank);
    std::string explain_host_of_two_nodes(int node, int other, std::string const& host) const;

    evidence& known_;
    std::deque<remote_rank> ranks_;  ///< a deque: adding one does not move the others
    std::deque<remote_host> hosts_;
    std::vector<std::string> planned_hosts_;   ///< by node
    int first_late_ = 0;                       ///< the number of the first late rank
    std::map<int, std::string> host_of_node_;  ///< from the shims that have connected
    std::map<std::string, int> node_of_host_;
};

}  // namespace muster
