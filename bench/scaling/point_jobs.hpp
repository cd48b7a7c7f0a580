// The batch jobs of a study: how they are submitted and asked for, and the file in which they are noted.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "bench/scaling/scale_request.hpp"

namespace muster {

inline constexpr std::chrono::minutes answer_limit{5};  // a busy scheduler tries for minutes

enum class point_phase { waiting, running, ended };

struct point_job {
    int ranks = 1;
    std::string id;
    std::string output;     ///< the file of what the job itself prints; "" where the scheduler chooses it
    std::string submitted;  ///< UTC, ISO 8601
    point_phase phase = point_phase::waiting;
    std::string state;           ///< in the scheduler's words, "RUNNING", "CANCELLED", "FAILED, exit code 2"
    int repeats = most_repeats;  ///< that it was to make; this where jobs.json does not tell
    bool operator==(point_job const&) const = default;
    bool ended() const noexcept { return phase == point_phase::ended; }
};

/// FOLDER/jobs.json, in the order in which they were submitted; none where there is no such file. Throws errc::invalid_data.
std::vector<point_job> read_point_jobs(std::filesystem::path const& folder);
void write_point_jobs(std::filesystem::path const& folder, std::vector<point_job> const& jobs);

/// The words of `muster submit` for a job of `ranks` in which `command` runs once, a GPU each where the site has GPUs. `options` go before
/// ours; a --ranks among them, whose number is replaced, asks for ranks without GPUs.
std::vector<std::string> submit_words(std::string const& muster, int ranks, std::vector<std::string> const& options,
                                      std::vector<std::string> const& command);

/// Submits it; prints each note of muster's that is not among `told`, and adds it there. Throws errc::unavailable with what muster said.
point_job submit_point(std::vector<std::string> const& words, int ranks, std::vector<std::string>& told,
                       environment const& variables);

/// Sets its phase and state. A job that the scheduler has forgotten has ended. Throws errc::unavailable where no scheduler answers.
void ask_for(point_job& job, std::string const& muster, environment const& variables);

}  // namespace muster
