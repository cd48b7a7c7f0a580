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

/// What other runs of the job have, on the nodes of one that asks.
struct leased_parts {
    int runs = 0;
    int wide = 0;                   ///< of these: over other nodes too, and what they have here is not known
    std::vector<std::string> gpus;  ///< by visible_name
    cpuset cpus;
    bool operator==(leased_parts const&) const = default;
};

/// A run writes what its ranks have into its session's folder, as the file `lease`; it is gone with the folder. Runs of one job look and write one after
/// the other, as long as this object lives, at most for a moment.
class job_leases {
  public:
    /// `folders`: where sessions' folders are.
    explicit job_leases(std::string job_id, std::vector<std::string> folders = {"/dev/shm", "/tmp"});

    /// Those of sessions of this user that live and have ranks on one of `nodes`, without `own_session`.
    leased_parts others(std::string const& own_session, std::vector<std::string> const& nodes) const;
    /// `nodes`: those with ranks, as the job spells them. Best effort: a run must not fail over it.
    void take(std::string const& own_session, std::vector<std::string> const& nodes,
              std::vector<binding> const& ranks) const noexcept;
    /// The same of a run over other nodes too, each of which finds its own GPUs and cores.
    void take_wide(std::string const& own_session, std::vector<std::string> const& nodes) const noexcept;

  private:
    void write(std::string const& own_session, std::vector<std::string> const& nodes, std::string const& gpus,
               std::string const& cpus) const noexcept;

    std::string job_id_;
    std::vector<std::string> folders_;
    unique_fd turn_;
};

/// What is left for `ranks` ranks beside `others`, with a note; as given, and "" for the note, where there are no others. What the user has chosen by
/// maps, or by letting ranks share, stays. Pure.
struct placement_beside {
    topology machine;
    placement_request wanted;
    std::string note;
};
placement_beside place_beside(topology machine, placement_request wanted, leased_parts const& others, int ranks,
                              bool has_other_nodes = false);

}  // namespace muster
