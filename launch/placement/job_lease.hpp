// Lets several runs of one job on one node know of each other, so that each gets its own GPUs and cores.
#pragma once

#include <string>
#include <vector>

#include "base/cpuset.hpp"
#include "base/unique_fd.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/placement/placement_request.hpp"

namespace muster {

/// Holds what other runs of the job have on the nodes of this run.
struct leased_parts {
    int runs = 0;
    int wide = 0;                   ///< of these runs, those over other nodes, too; what they have here is not known
    std::vector<std::string> gpus;  ///< by visible_name
    cpuset cpus;
    bool operator==(leased_parts const&) const = default;
};

/// A run writes what its ranks have into its session's folder, as the file `lease`, which is removed with the folder. While this
/// object lives, for a moment at most, runs of one job read and write one after the other.
class job_leases {
  public:
    /// `folders` contain the sessions' folders.
    explicit job_leases(std::string job_id, std::vector<std::string> folders = {"/dev/shm", "/tmp"});

    /// Returns what living sessions of this user with ranks on one of `nodes` have, without `own_session`.
    leased_parts others(std::string const& own_session, std::vector<std::string> const& nodes) const;
    /// `nodes` are those with ranks, as the job spells them. Best effort: a run must not fail because of this.
    void take(std::string const& own_session, std::vector<std::string> const& nodes,
              std::vector<binding> const& ranks) const noexcept;
    /// Does the same for a run that also has other nodes, each of which finds its own GPUs and cores.
    void take_wide(std::string const& own_session, std::vector<std::string> const& nodes) const noexcept;

  private:
    void write(std::string const& own_session, std::vector<std::string> const& nodes, std::string const& gpus,
               std::string const& cpus) const noexcept;

    std::string job_id_;
    std::vector<std::string> folders_;
    unique_fd turn_;
};

/// Holds what is left for `ranks` ranks next to `others`, with a note; unchanged, and without a note, if there are no others.
/// Keeps what the user has chosen by maps, or by letting ranks share. Pure.
struct placement_beside {
    topology machine;
    placement_request wanted;
    std::string note;
};
placement_beside place_beside(topology machine, placement_request wanted, leased_parts const& others, int ranks,
                              bool has_other_nodes = false);

}  // namespace muster
