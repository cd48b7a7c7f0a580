// A scaling study: what was asked for, its runs, and their JSON (schema "muster.results/3").
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/study/metric_reader.hpp"
#include "bench/tools/crowd.hpp"
#include "bench/tools/machine.hpp"

namespace muster {

enum class run_status { ok, failed, timed_out, interrupted };
/// The work in relation to the number of ranks: the same for all, the same for each rank, or what the program does.
enum class work_series { as_given, strong, weak };

/// The rank that muster run names first at a run's end, from its samples of the ranks; only runs of more than 30 s have one.
struct remarked_rank {
    int rank = 0;
    std::string host;
    double kept_waiting = 0;  ///< share of the time that the others waited for it; 0 if that is not known
    std::string reason;       ///< "its GPU ran at 1005 of 1980 MHz: heat (hardware)"; empty: not known
    bool operator==(remarked_rank const&) const = default;
};

/// One run of one number of ranks. A study keeps every run, and averages none away.
struct study_run {
    int ranks = 1;
    int nodes = 1;
    std::vector<std::string> hosts;
    int repetition = 0;   ///< from 0
    int order = 0;        ///< its place among all runs of the study, from 0: the numbers of ranks take turns
    bool warmup = false;  ///< not counted
    std::string started;  ///< UTC, ISO 8601
    double wall_s = 0;    ///< of the whole command: launching the ranks, start-up, the program's work, exit
    run_status status = run_status::ok;
    int exit_code = 0;       ///< 128+n for signal n
    std::string reason;      ///< the reason why it does not count; "" if it counts
    std::string last_words;  ///< of a failed run: the last line of its output
    std::string output;      ///< the file with all that it printed, within the study's folder, or ""
    machine_load load;
    bool oversubscribed = false;  ///< more ranks than cores on some node
    bool simulated = false;
    std::vector<metric_series> metrics;
    std::optional<remarked_rank> remarked = {};
    bool operator==(study_run const&) const = default;
    /// Returns false for a run that a job should have made and did not.
    bool was_made() const noexcept { return wall_s > 0 || !output.empty(); }
    bool counts() const noexcept { return status == run_status::ok && !warmup; }
};

/// The place of one rank, from `muster plan`.
struct placed_rank {
    int rank = 0;
    std::string host, cpus, gpu;
    bool operator==(placed_rank const&) const = default;
};

/// One number of ranks, from `muster plan` before the runs.
struct study_point {
    int ranks = 1, nodes = 1;
    std::vector<std::string> hosts;
    bool oversubscribed = false;
    std::string gpus;  ///< "4 on a, 4 on b"; "" without GPUs
    std::vector<placed_rank> places;
    int cores = 0;  ///< of its nodes together; 0: not known
    bool operator==(study_point const&) const = default;
};

/// The compared metric: the time or the rate by which ranks are judged.
struct judged_metric {
    std::string name = "wall_s";
    bool rate = false;  ///< more is better
    bool operator==(judged_metric const&) const = default;
};

/// The request. A study goes on only if it is the same.
struct study_plan {
    std::vector<std::string> program;  ///< with placeholders
    std::string net;                   ///< a built-in network: "mnist", …; "" for the user's program
    std::string protocol;              ///< of such a network: "fast", "published", …; "" for a program
    std::vector<std::string> notes;    ///< what a reader must know about every figure: "shortened: 2 of the protocol's 32 epochs"
    work_series series = work_series::as_given;
    std::optional<long> batch;  ///< of all ranks in a strong series, of one rank in a weak one
    std::vector<int> ranks;
    int repeats = 6, warmup = 1;
    std::optional<long> shuffle;  ///< seed of the order of the ranks within a repetition; nothing: as listed
    std::vector<metric_pattern> patterns;
    std::string metric_file;  ///< with placeholders; "" if it prints its metrics
    std::vector<metric_choice> choices;
    judged_metric judged;
    std::vector<std::string> launch;  ///< options of muster run
    double timeout_s = 0;             ///< of a run; 0: none
    bool operator==(study_plan const&) const = default;
    bool has_net() const noexcept { return !net.empty(); }
};

struct study {
    std::string name;            ///< of the program, for people and logs
    std::string created;         ///< UTC, ISO 8601
    std::string command;         ///< the scale command, as a line for a shell
    std::string launch_command;  ///< the command of the first run
    std::string version;         ///< of muster
    std::string scheduler;       ///< "local", "slurm", …
    std::string folder;          ///< working directory of the runs
    machine_facts machine;
    machine_load load;                                           ///< before the first run
    std::vector<std::pair<std::string, std::string>> variables;  ///< those that affect speed
    std::vector<std::pair<std::string, std::string>>
        software;  ///< name and version of what the program is made of, and GPUs' clocks
    study_plan plan;
    std::vector<study_point> points;
    std::vector<study_run> runs;
    bool operator==(study const&) const = default;
};

inline constexpr char const* study_schema = "muster.results/3";

std::string_view to_string(run_status status) noexcept;
std::string_view to_string(work_series series) noexcept;

nlohmann::json to_json(study const& results);
nlohmann::json to_json(study_run const& run);

/// Throws errc::invalid_data naming `origin` and the place.
study read_study(nlohmann::json const& document, std::string const& origin);
/// Returns the results.json of a folder; a file as it is. Throws errc::usage for a study of jobs before anything is collected.
std::string results_file(std::string const& path);
/// Reads a study from a file, or from the results.json of a folder.
study read_study_file(std::string const& path);
/// Reads a study without its runs, of which there may be none.
study read_study_header(checked_json const& from);
study_run read_study_run(checked_json const& from);

}  // namespace muster
