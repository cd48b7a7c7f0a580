// The scheduler's answer on why a job is ending.
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

/// An end by SIGTERM or SIGKILL is held this long: within it, a scheduler's signal reaches all processes of a job.
inline constexpr duration blame_patience{0.8};

enum class job_end { unknown, going_on, cancelled, out_of_time, preempted, requeued, node_failed, out_of_memory };

/// Reads one record of `scontrol -o show job`; `restarts`: how often this job had been put back into the queue before. Pure.
job_end parse_job_end(std::string_view record, int restarts = 0);

/// Reads qstat's answer about a running job. Pure.
job_end end_of_pbs_job(pbs_job const& job);

/// The times for questions to a scheduler: while a request to end waits, and when its answer decides who is blamed, since it may
/// be busy.
inline constexpr std::chrono::milliseconds brief_question{1000}, patient_question{3000};

/// Asks the scheduler. For other schedulers than Slurm, PBS and Flux, only the known end of the job's time counts. Takes three
/// times `patience` at most. Whatever the scheduler does, this does not throw.
job_end ask_job_end(allocation const& given, environment const& variables, std::chrono::milliseconds patience = brief_question);

/// Returns the nodes whose failure ends a job, or its heterogeneous job, from the records of `scontrol -o show job`: FailedNode,
/// which Slurm 22.05 does not print. Pure.
std::vector<std::string> parse_failed_nodes(std::string_view records, std::string_view id);

/// Returns the nodes that `scontrol -o show node`, which prints a record for each node, calls down. Pure.
std::vector<std::string> parse_down_nodes(std::string_view records);

/// Returns the job's nodes that the scheduler has lost, as `given` spells them; none for other schedulers than Slurm and Flux.
/// Takes twice `patience` at most. Whatever the scheduler does, this does not throw.
std::vector<std::string> ask_down_nodes(allocation const& given, environment const& variables,
                                        std::chrono::milliseconds patience = brief_question);

/// Returns what a signal to a job asks for: SIGTERM. Flux sends SIGALRM at the end of a job's time, SIGTERM when it is cancelled
/// or goes on after that, and its broker adds SIGHUP to each of these (flux-core 0.88). Pure.
int meaning_of(int signal_number, allocation const& given) noexcept;

/// Returns what to do about a job that reached its time limit: "its time limit of 1:00:00 was reached; give it more (--time), or
/// …". `limit` may be empty. `signals_ranks` and `goes_on`: the job already has an early signal, and a chain or Slurm's
/// requeueing. Pure.
std::string explain_time_limit(std::string_view limit, bool signals_ranks, bool goes_on);

/// Does the same with the job's variables: Slurm's contain its limit, muster's whether a chain goes on. `requeues`:
/// --requeue-saved was given. Pure.
std::string explain_time_limit(environment const& variables, bool signals_ranks, bool requeues);

/// Returns "job 12 was cancelled"; empty if nothing ends the job.
std::string describe(job_end why, std::string const& job_id);

// Flux's answer on why a job is ending, from its log of events.

/// Reads `flux job eventlog --format=json`, an event on each line: the first exception of severity 0 ends a job. A job without
/// one goes on; for a text without events nothing is known. Pure.
job_end parse_flux_events(std::string_view events);

/// Asks the instance that the job belongs to, for a job's script the parent. Asks again, for 0.3 s, while the job seems to go on.
/// Takes `patience` for each question at most. Whatever Flux does, this does not throw.
job_end ask_flux_job_end(allocation const& given, environment const& variables, std::chrono::milliseconds patience);

/// Returns the hosts that `flux resource status` calls offline, as R spells them. Pure.
std::vector<std::string> parse_flux_hosts(std::string_view printed);

/// Returns the job's hosts that its own instance has lost. Takes `patience` at most. Whatever Flux does, this does not throw.
std::vector<std::string> ask_flux_down_nodes(environment const& variables, std::chrono::milliseconds patience);

}  // namespace muster
