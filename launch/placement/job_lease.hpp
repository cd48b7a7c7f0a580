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

/// What other runs of the job have on this node.
struct leased_parts {
    int runs = 0;
    int wide = 0;                   ///< of these: over several nodes, and what they have here is not known
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

    /// Those of sessions of this user that live, without `own_session`.
    leased_parts others(std::string const& own_session) const;
    /// Best effort: a run must not fail over it.
    void take(std::string const& own_session, std::vector<binding> const& ranks) const noexcept;
    /// The same of a run over several nodes, each of which finds its own GPUs and cores.
    void take_wide(std::string const& own_session) const noexcept;

  private:
    void write(std::string const& own_session, std::string const& gpus, std::string const& cpus) const noexcept;

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
placement_beside place_beside(topology machine, placement_request wanted, leased_parts const& others, int ranks);

}  // namespace muster
