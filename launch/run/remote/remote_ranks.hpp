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

/// What all ranks get, and is large: kept once.
struct common_job {
    environment variables;
    std::vector<std::string> command;
    std::vector<std::string> exports;
    std::vector<int> kept_parts;
};

/// What the launcher tells one rank's shim, and hears of it; evidence::ranks has what that says of the rank.
struct remote_rank {
    wire::job job;  ///< what it gets, except for `common`; the host is filled in when its shim says it
    std::shared_ptr<common_job const> common;
    int node = 0;    ///< index into the allocation's nodes
    int spare = -1;  ///< its number where it begins as one, which waits for the place of a lost rank
    rank_link link;
    wire::ready place;
    std::string step;   ///< what the engine calls its step
    int answered = 0;   ///< number of the last ping that its shim has answered
    int inspected = 0;  ///< number of the inspection that `sight` is from
    process_sight sight;
    bool given_up = false;  ///< they have gone on without it, and nobody listens to it
};

/// One host of the engine remote, by the number of its agent, which is the rank of its node.
struct remote_host {
    std::shared_ptr<frame_channel> link;  ///< its agent's; null: it has not come
    std::vector<int> ranks;
    bool has_job = false;
};

/// All ranks of a run in order of rank, and the hosts that their shims named.
class remote_ranks {
  public:
    /// Of each rank with the host's name as the plan has it. `known` is filled in; it must outlive this.
    remote_ranks(std::vector<remote_rank> ranks, evidence& known);

    auto begin() noexcept { return ranks_.begin(); }
    auto end() noexcept { return ranks_.end(); }
    auto begin() const noexcept { return ranks_.begin(); }
    auto end() const noexcept { return ranks_.end(); }
    std::size_t size() const noexcept { return ranks_.size(); }
    remote_rank& operator[](int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
    rank_evidence const& known(int rank) const { return known_[rank]; }

    /// Why this shim cannot be the rank that it says it is; empty if it can.
    std::string objection_to(wire::hello const& hello, std::string_view engine) const;
    /// The same of an agent.
    std::string objection_to_agent(wire::hello const& hello) const;
    /// Takes note of a shim without objections; returns its rank.
    remote_rank& admit(wire::hello const& hello);

    /// All that its shim gets.
    wire::job job_of(remote_rank const& rank) const;
    remote_host& host(int number) { return hosts_.at(static_cast<std::size_t>(number)); }
    std::size_t hosts() const noexcept { return hosts_.size(); }
    /// Adds a rank that is started later, by an agent that no other rank has, on the host of that name in the plan. Returns it.
    remote_rank& add(remote_rank rank);
    std::string const& planned_host(remote_rank const& rank) const {
        return planned_hosts_.at(static_cast<std::size_t>(rank.node));
    }
    /// Whether it is to come yet, or has come, since others run.
    bool is_late(int rank) const noexcept { return rank >= first_late_ && rank < static_cast<int>(ranks_.size()); }
    bool is_late_agent(int number) const noexcept;
    /// Whether any is left of those that the run has begun with.
    bool any_first_here() const;
    /// Whether they may, without a lost one.
    bool goes_on_in_place() const noexcept { return !ranks_.empty() && ranks_.front().job.in_place; }
    /// How much output each shim may send ahead.
    std::size_t window() const noexcept { return ranks_.empty() ? 0 : ranks_.front().job.output_window; }
    bool is_on(int rank, int number) const noexcept;
    /// Of ranks that have not come up: names without an address here, which an engine's own message may hide.
    std::vector<std::string> unknown_hosts() const;
    /// Whether agents carry ranks' messages, and one has not come: then its ranks alone are waited for.
    bool awaits_agent_of(int rank) const noexcept;
    /// Who has not come, or is not placed yet.
    std::string list_missing() const;
    /// What the user should know of the nodes, once all are ready; mostly empty.
    std::string note_on_places() const;

    /// Two ranks of one node with the same GPU, once all are ready; nothing if each has its own.
    std::optional<std::pair<int, int>> find_shared_gpu() const;
    /// The message that starts all ranks, once all are ready.
    wire::go make_go() const;

    void send_all(wire::message const& message);
    /// The others go on without it: it is ended, where it can be reached, and nobody listens to it.
    void give_up(int rank);
    bool any_given_up() const noexcept;
    /// As the look with this number has shown them.
    std::vector<rank_row> rows(int inspection) const;

  private:
    void take_in(remote_rank rank);
    std::string explain_host_of_two_nodes(int node, int other, std::string const& host) const;

    evidence& known_;
    std::deque<remote_rank> ranks_;  ///< one that is added leaves the others where they are
    std::deque<remote_host> hosts_;
    std::vector<std::string> planned_hosts_;   ///< by node
    int first_late_ = 0;                       ///< the number of the first one
    std::map<int, std::string> host_of_node_;  ///< of the shims that have connected
    std::map<std::string, int> node_of_host_;
};

}  // namespace muster
