// The ranks of a run that an engine started, as the launcher knows them from their shims.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/observe/process_sight.hpp"
#include "launch/run/remote/rank_link.hpp"
#include "launch/watch/rank_table.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

/// What all ranks are told alike, and is large: kept once.
struct common_job {
    environment variables;
    std::vector<std::string> command;
    std::vector<std::string> exports;
};

/// One rank as the launcher knows it from its shim.
struct remote_rank {
    enum class state { absent, placing, ready, running, ended, gone, lost };
    wire::job job;  ///< what it is told, but for `common`; the host is filled in when its shim says it
    std::shared_ptr<common_job const> common;
    int node = 0;  ///< index into the allocation's nodes
    state now = state::absent;
    rank_link link;
    wire::ready place;
    std::string step;  ///< what the engine calls its step
    std::optional<int> wait_status;
    bool left_early = false;  ///< ended with code 0 before anything else had gone wrong
    std::string daemon_lost;  ///< name of the engine's daemon on its node, if that died
    bool uses_mpi = false;
    bool connected = false;  ///< to its world's server of PMIx or PMI-1, where that tells
    bool finalized = false;
    bool settled = false;         ///< it has ended, and nothing more comes of the two
    bool cut = false;             ///< its connection was closed at the other end: the shim has ended, its node lives
    bool asked = false;           ///< the engine or the scheduler had asked its shim to end
    bool watcher_killed = false;  ///< its shim's guard was killed, and had not been asked to end before
    int answered = 0;             ///< number of the last ping that its shim has answered
    int inspected = 0;            ///< number of the inspection that `sight` is from
    process_sight sight;

    bool over() const noexcept { return now == state::gone || now == state::lost; }
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
    /// Of each rank with the host's name as the plan has it.
    explicit remote_ranks(std::vector<remote_rank> ranks);

    auto begin() noexcept { return ranks_.begin(); }
    auto end() noexcept { return ranks_.end(); }
    auto begin() const noexcept { return ranks_.begin(); }
    auto end() const noexcept { return ranks_.end(); }
    std::size_t size() const noexcept { return ranks_.size(); }
    remote_rank& operator[](int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

    /// Why this shim cannot be the rank that it says it is; empty if it can.
    std::string objection_to(wire::hello const& hello, std::string_view engine) const;
    /// The same of an agent.
    std::string objection_to_agent(wire::hello const& hello) const;
    /// Takes note of a shim without objections; returns its rank.
    remote_rank& admit(wire::hello const& hello);

    /// All that its shim is told.
    wire::job job_of(remote_rank const& rank) const;
    remote_host& host(int number) { return hosts_.at(static_cast<std::size_t>(number)); }
    std::size_t hosts() const noexcept { return hosts_.size(); }
    /// How much output each shim may send ahead.
    std::size_t window() const noexcept { return ranks_.empty() ? 0 : ranks_.front().job.output_window; }
    bool is_on(int rank, int number) const noexcept;
    /// Whether agents carry ranks' messages, and one has not come: then its ranks alone are waited for.
    bool awaits_agent_of(remote_rank const& rank) const noexcept;

    /// Two ranks of one node with the same GPU, once all are ready; nothing if each has its own.
    std::optional<std::pair<remote_rank*, remote_rank const*>> find_shared_gpu();
    /// The message that starts all ranks, once all are ready.
    wire::go make_go() const;

    std::string name_of(remote_rank const& rank) const;
    std::string host_of(remote_rank const& rank) const;
    /// "ranks 8-11 on node3, rank 14 on node4"; of more than four nodes the first four, "and 60 more nodes"
    std::string list(remote_rank::state now) const;
    std::string list(std::function<bool(remote_rank const&)> const& of) const;
    std::size_t count(remote_rank::state now) const;
    /// Those whose shims are there and whose programs have not ended.
    std::size_t running() const;
    void send_all(wire::message const& message);
    /// As the look with this number has shown them.
    std::vector<rank_row> rows(int inspection) const;
    /// A rank of an MPI program that has ended well while most others had not, `suspect` (or -1) left out: it has not called
    /// MPI_Finalize, in which it would have waited for them. They fail because of it, or are killed, or wait. Null if there is none.
    remote_rank const* find_leaver(int suspect) const;
    /// Those that are in a world of MPI, of which its server has told.
    std::size_t in_world() const;
    bool any_connected() const;
    /// Ranks that have ended with code 0, "rank 1 on node2 had ended with code 0 before that"; empty if there is none.
    std::string list_early_ends() const;

  private:
    std::string explain_host_of_two_nodes(int node, int other, std::string const& host) const;

    std::vector<remote_rank> ranks_;
    std::vector<remote_host> hosts_;
    std::map<int, std::string> planned_host_;  ///< by node
    std::map<int, std::string> host_of_node_;  ///< of the shims that have connected
    std::map<std::string, int> node_of_host_;
};

}  // namespace muster
