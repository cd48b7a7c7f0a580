// The record of a run: run.json and the ranks' variables in its folder, from which users can understand and repeat it.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "launch/placement/bind_ranks.hpp"
#include "launch/record/output_span.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// Returns `pattern` with the job's number for each %j. Pure.
std::string with_job_number(std::string pattern, std::string_view id);

/// Returns the folder of a run: `pattern` with the job's number for %j. With %j, no two runs share a folder: a later one in the
/// same job gets .2, .3 and so on at its end. Throws errc::io.
std::string claim_run_folder(std::string const& pattern, std::string const& job_number);

/// Returns the folder for the output of a later generation: "DIR/generation.2". Pure.
std::string generation_folder(std::string const& folder, int generation);

/// Removes such folders of a former run, if they contain only files that muster writes there.
void clear_former_generations(std::string const& folder);

/// Returns "spare 0 on node1, cores 4-5, GPU 2". Pure.
std::string describe_spare(int number, std::string const& host, binding const& place);

/// Writes a file `muster.run/1`; does nothing without a folder.
class run_record {
  public:
    /// `folder` may be empty. `variables` are the ranks', without those of --env-exclude; the record names those that may be
    /// secrets, and leaves their values out.
    run_record(std::string folder, run_context const& run, environment variables, std::string working_dir);

    /// Writes run.json and `environment`, when the ranks' places are known; `here` only if muster itself starts them. Throws
    /// errc::io.
    void begin(local_placement const* here = nullptr);
    /// Adds how the run ended; begins the record first if the run failed before that. Reports a full disk on standard error.
    void end(int code, run_outcome const& outcome);
    /// Sets, for a run that may start again, how its generations ended, and why none follows; call it before end(). A generation
    /// that follows writes the record again.
    void end_generations(std::vector<generation_end> ends, std::string why_not);

  private:
    std::string text() const;

    std::string folder_;
    run_context const& run_;
    environment variables_;
    std::string launched_in_;  ///< the folder to which relative paths among the options refer
    std::string working_dir_;  ///< the ranks'
    std::time_t started_ = 0;
    std::vector<std::string> secrets_;
    std::vector<std::string> places_;  ///< "rank 0 on node1, cores 0-3, GPU 0"
    std::vector<output_span> output_;  ///< those of all generations
    std::vector<spare_record> spares_;
    std::vector<generation_end> generations_;
    std::string why_not_;  ///< why no generation follows
    std::string exit_;     ///< JSON; empty: it has not ended
};

}  // namespace muster
