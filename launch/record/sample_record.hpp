// Records the samples of a run while it lasts: the file samples.json in its folder or, without one, in the session folder of its launcher.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch/samples/sample_sums.hpp"
#include "launch/samples/side_work.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// Returns the time between looks: --sample or, of many ranks, so long that the launcher takes a thousand looks a second at most. Pure.
duration pause_of_samples(run_context const& run);

/// Writes together what nodes tell at about the same time, on a thread, since a shared file system may block a process for long: at most one write is in
/// progress. A file that cannot be written ends no run.
class sample_record {
  public:
    /// Returns the present generation's ranks that run or, at the end, all of them.
    using present = std::function<std::vector<present_rank>(bool ended_too)>;

    /// `job`: the job's number, as shown to people. `say` gets a note about the first write that fails. All but `job` must outlive this.
    sample_record(event_loop& loop, run_context const& run, std::string job, present ranks,
                  std::function<void(std::string const&)> say);
    /// Writes the rest, with the last samples of ranks that have ended, unless the file system does not answer.
    ~sample_record();
    sample_record(sample_record const&) = delete;
    sample_record& operator=(sample_record const&) = delete;

    /// Takes a look, whose ranks have their numbers at the start.
    void note(std::string const& host, node_sample const& look);

  private:
    struct files;  // shared with the thread that writes
    run_samples samples(bool ended_too) const;
    void write();
    void tell(std::string const& fault);

    event_loop& loop_;
    run_context const& run_;
    present ranks_;
    std::function<void(std::string const&)> say_;
    run_samples head_;
    sample_sums sums_;
    event_loop::timer due_ = 0;
    event_loop::clock::time_point written_{};
    bool fault_told_ = false;
    std::shared_ptr<files> files_;
    side_work writes_;
};

}  // namespace muster
