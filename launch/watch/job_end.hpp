// The scheduler's word on why a job is being ended.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/units.hpp"
#include "launch/scheduler/allocation.hpp"
#include "launch/scheduler/pbs.hpp"

namespace muster {

/// How long an end by SIGTERM or SIGKILL is held: a scheduler's signal reaches all processes of a job within it.
inline constexpr duration blame_patience{0.8};

enum class job_end { unknown, going_on, cancelled, out_of_time, preempted, requeued, node_failed, out_of_memory };

/// From one record of `scontrol -o show job`; `restarts`: how often this job had been put back into the queue before. Pure.
job_end parse_job_end(std::string_view record, int restarts = 0);

/// From qstat's answer about a job that runs. Pure.
job_end end_of_pbs_job(pbs_job const& job);

/// How long a scheduler is asked: while a request to end waits, and where its word decides who is blamed, since it may be busy.
inline constexpr std::chrono::milliseconds brief_question{1000}, patient_question{3000};

/// Asks the scheduler; of those that cannot be asked (all but Slurm, PBS and Flux) only the known end of the job's time tells. Takes three
/// times `patience` at most. Never throws for what the scheduler does.
job_end ask_job_end(allocation const& given, environment const& variables, std::chrono::milliseconds patience = brief_question);

/// The nodes for whose failure a job, or its heterogeneous job, is ended, from the records of `scontrol -o show job`: FailedNode, which
/// Slurm 22.05 does not print. Pure.
std::vector<std::string> parse_failed_nodes(std::string_view records, std::string_view id);

/// Those of the nodes that a record each of `scontrol -o show node` calls down. Pure.
std::vector<std::string> parse_down_nodes(std::string_view records);

/// The job's nodes that the scheduler has lost, as `given` spells them; of those that cannot be asked (all but Slurm and Flux) none. Takes
/// twice `patience` at most. Never throws for what the scheduler does.
std::vector<std::string> ask_down_nodes(allocation const& given, environment const& variables,
                                        std::chrono::milliseconds patience = brief_question);

/// A signal that came to a job as what it asks for: SIGTERM. Flux sends SIGALRM at the end of a job's time, SIGTERM when it is cancelled or
/// goes on after that, and its broker adds SIGHUP to each of these (flux-core 0.88). Pure.
int meaning_of(int signal_number, allocation const& given) noexcept;

/// What to do about a job that its time limit has ended: "its time limit of 1:00:00 was reached; give it more (--time), or …". `limit` may be empty. `signals_ranks`
/// and `goes_on`: an early signal and a chain, or Slurm's requeueing, were asked for already. Pure.
std::string explain_time_limit(std::string_view limit, bool signals_ranks, bool goes_on);

/// … of the job that the variables are of: Slurm's tell its limit, muster's whether a chain goes on. `requeues`: --requeue-saved was given. Pure.
std::string explain_time_limit(environment const& variables, bool signals_ranks, bool requeues);

/// "job 12 was cancelled"; empty where nothing ends the job.
std::string describe(job_end why, std::string const& job_id);

// Flux's word on why a job is being ended, out of its log of events.

/// From `flux job eventlog --format=json`, an event a line: the first exception of severity 0, which ends a job. A job without one goes on; a
/// text without events says nothing. Pure.
job_end parse_flux_events(std::string_view events);

/// Asks the instance that the job is one of: of a job's script that is its parent. Asks again, for 0.3 s, while the job
/// seems to go on. Takes `patience` for each question at most. Never throws for what Flux does.
job_end ask_flux_job_end(allocation const& given, environment const& variables, std::chrono::milliseconds patience);

/// The hosts that `flux resource status` calls offline, as R spells them. Pure.
std::vector<std::string> parse_flux_hosts(std::string_view printed);

/// Those of the job that its own instance has lost. Takes `patience` at most. Never throws for what Flux does.
std::vector<std::string> ask_flux_down_nodes(environment const& variables, std::chrono::milliseconds patience);

}  // namespace muster
