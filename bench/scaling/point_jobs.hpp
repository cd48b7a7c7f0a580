// The batch jobs of a study: how they are submitted and asked for, and the file that lists them.
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
    std::string output;     ///< the file with what the job itself prints; "" if the scheduler chooses it
    std::string submitted;  ///< UTC, ISO 8601
    point_phase phase = point_phase::waiting;
    std::string state;           ///< in the scheduler's words, "RUNNING", "CANCELLED", "FAILED, exit code 2"
    int repeats = most_repeats;  ///< planned; most_repeats if jobs.json does not have it
    bool operator==(point_job const&) const = default;
    bool ended() const noexcept { return phase == point_phase::ended; }
};

/// Reads FOLDER/jobs.json, in the order of submission; returns none if there is no such file. Throws errc::invalid_data.
std::vector<point_job> read_point_jobs(std::filesystem::path const& folder);
void write_point_jobs(std::filesystem::path const& folder, std::vector<point_job> const& jobs);

/// Returns the words of `muster submit` for a job of `ranks` in which `command` runs once, with a GPU each if the site has GPUs. `options`
/// precede the others; a --ranks among them, whose number is replaced, asks for ranks without GPUs.
std::vector<std::string> submit_words(std::string const& muster, int ranks, std::vector<std::string> const& options,
                                      std::vector<std::string> const& command);

/// Submits it; prints each note of muster that is not in `told`, and adds it there. Throws errc::unavailable with muster's message.
point_job submit_point(std::vector<std::string> const& words, int ranks, std::vector<std::string>& told,
                       environment const& variables);

/// Sets its phase and state. A job that the scheduler has forgotten has ended. Throws errc::unavailable if no scheduler answers.
void ask_for(point_job& job, std::string const& muster, environment const& variables);

}  // namespace muster
