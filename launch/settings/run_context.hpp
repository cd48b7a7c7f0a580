// One run of ranks: what was asked for, what surrounds it, the nodes it has and where its ranks go, as planned, and how it goes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/elastic/run_life.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/samples/remarks/run_remarks.hpp"
#include "launch/samples/run_samples.hpp"
#include "launch/scheduler/allocation.hpp"
#include "launch/scheduler/scheduler_sources.hpp"
#include "launch/settings/run_options.hpp"

namespace muster {

/// The part of a node that a rank has.
struct rank_share {
    std::string cpus;  ///< "0-7"; empty: not bound
    int gpu = -1;      ///< in the node's PCI order; -1: none
    bool operator==(rank_share const&) const = default;
};

/// A process that waits for the place of a lost rank, or has waited.
struct spare_record {
    int number = 0;
    std::string place;                            ///< "spare 0 on node1, cores 4-5, GPU 2"
    int generation = -1, rank = -1, member = -1;  ///< as which it was taken in first; below 0: it was not
    std::string end = {};                         ///< "exited with code 3", of one that has ended before that by itself
};

/// The course of a run, for its record.
struct run_outcome {
    std::string cause;  ///< the first reported error; empty: there was no error
    std::string host;   ///< of the rank that failed first
    int rank = -1;      ///< that rank; -1: none
    end_kind kind = end_kind::last;
    std::vector<std::string> lost_hosts = {};
    host_pool hosts = {};        ///< of --host-discovery-script, as they were last
    bool told_of_hosts = false;  ///< the ranks were asked to save, as hosts come or go
    bool early_signal = false;   ///< the ranks got the signal that comes before the end of the job's time
    bool lost_node = false;      ///< it ends because a node is lost
    bool from_outside =
        false;  ///< it ends because of the scheduler, the user, a time limit, a node, or a signal to a rank that muster did not send
    /// Times on seconds_now(): ranks started, wrote something first, wrote a line with muster-metric: first; the run was known to fail.
    /// Below 0: it did not happen.
    double started_s = -1, output_s = -1, metric_s = -1, failed_s = -1;
    std::int64_t saved_step = -1;               ///< of the first line with muster-checkpoint:; below 0: there was none
    double first_started_s = -1;                ///< the same of what was started first, where the run has gone on in place since
    std::optional<generation> in_place = {};    ///< the generation as which the run goes on in place, once it does
    std::vector<generation_end> survived = {};  ///< of generations that were followed in place
    std::vector<spare_record> spares = {};
    run_samples samples = {};              ///< the last ones of the present generation; empty: there were none
    std::vector<run_remark> remarks = {};  ///< what is worth saying about the run
    std::vector<rank_share> shares = {};   ///< by rank, of ranks that other machines have placed; empty: that did not come
};

/// The places of the states that the ranks of a run keep.
struct kept_places {
    int fd = -1;                       ///< memory of this process; -1: none
    std::vector<std::string> files{};  ///< the same of other processes, by node of the run; empty: none
    std::vector<int> parts{};          ///< of these, by rank; empty: their numbers
    int free_part = 0;                 ///< of the first spare

    int part_of(int rank) const {
        auto const ranks = static_cast<int>(parts.size());
        return ranks == 0 ? rank : rank < ranks ? parts[static_cast<std::size_t>(rank)] : free_part + rank - ranks;
    }
};

/// A run while it is planned, from top to bottom. The references must outlive it.
struct run_plan {
    run_options options;
    environment const& inherited;  ///< this process' own variables
    scheduler_sources const& sources;
    std::string session_dir;  ///< where files of this run are written, on this machine
    int guardian_fd = -1;     ///< hangs up when the guardian dies
    allocation given{};
    mapping map{};
    mapping waiting{};  ///< nodes without ranks whose processes wait for the place of a lost rank (--warm-spares)
    run_life life{};    ///< of a run that may start again; without members in any other
    kept_places kept{};
};

/// A planned run: of it nothing changes but how it goes.
struct run_context : run_plan {
    run_outcome& outcome;             ///< where to tell that
    discovery* asks_hosts = nullptr;  ///< which host there are is asked by it; null: nobody asks

    /// The present generation of a run that may start again.
    auto const& present() const noexcept { return outcome.in_place ? *outcome.in_place : life.now; }
    /// Returns the generation's number in such a run; -1 in any other.
    int generation() const noexcept { return options.is_elastic() ? present().number : -1; }
};

}  // namespace muster
