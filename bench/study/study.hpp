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
/// How the work depends on the number of ranks: the same for all, as much for each rank, or as the program does it.
enum class work_series { as_given, strong, weak };

/// One run of one number of ranks. Nothing is averaged away: a study holds every one.
struct study_run {
    int ranks = 1;
    int nodes = 1;
    std::vector<std::string> hosts;
    int repetition = 0;   ///< from 0
    int order = 0;        ///< when it ran among all runs of the study, from 0: the numbers of ranks take turns
    bool warmup = false;  ///< not counted
    std::string started;  ///< UTC, ISO 8601
    double wall_s = 0;    ///< of the whole command: launching the ranks, start-up, the program's work, exit
    run_status status = run_status::ok;
    int exit_code = 0;       ///< 128+n for signal n
    std::string reason;      ///< why it does not count; "" if it does
    std::string last_words;  ///< of a run that failed: the last line of its output
    std::string output;      ///< the file with all that it printed, within the study's folder; "" if there is none
    machine_load load;
    bool oversubscribed = false;  ///< more ranks than cores on some node
    bool simulated = false;
    std::vector<metric_series> metrics;
    bool operator==(study_run const&) const = default;
    /// Not one that a job should have made and did not.
    bool was_made() const noexcept { return wall_s > 0 || !output.empty(); }
    bool counts() const noexcept { return status == run_status::ok && !warmup; }
};

/// Where one rank was to run, as `muster plan` said.
struct placed_rank {
    int rank = 0;
    std::string host, cpus, gpu;
    bool operator==(placed_rank const&) const = default;
};

/// One number of ranks, as `muster plan` said before the runs.
struct study_point {
    int ranks = 1, nodes = 1;
    std::vector<std::string> hosts;
    bool oversubscribed = false;
    std::string gpus;  ///< "4 on a, 4 on b"; "" where there are none
    std::vector<placed_rank> places;
    int cores = 0;  ///< of its nodes together; 0: not known
    bool operator==(study_point const&) const = default;
};

/// What is compared: the time or the rate by which ranks are judged.
struct judged_metric {
    std::string name = "wall_s";
    bool rate = false;  ///< more is better
    bool operator==(judged_metric const&) const = default;
};

/// What was asked for. A study goes on only where this is the same.
struct study_plan {
    std::vector<std::string> program;  ///< with placeholders
    std::string net;                   ///< whose training this program brings itself: "mnist", …; "" of the user's program
    std::string protocol;              ///< of such a net: "fast", "published", …; "" of a program
    std::vector<std::string> notes;    ///< what a reader must know of every figure: "shortened: 2 of the protocol's 32 epochs"
    work_series series = work_series::as_given;
    std::optional<long> batch;  ///< of all ranks in a strong series, of one rank in a weak one
    std::vector<int> ranks;
    int repeats = 6, warmup = 1;
    std::optional<long> shuffle;  ///< seed of the order of the ranks within a repetition; nothing: as listed
    std::vector<metric_pattern> patterns;
    std::string metric_file;  ///< with placeholders; "" where there is none
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
    std::vector<std::pair<std::string, std::string>> variables;  ///< that bear upon speed
    std::vector<std::pair<std::string, std::string>>
        software;  ///< name and version, of what the program is made of, and GPUs' clocks
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
/// The results.json of a folder; a file as it is. Throws errc::usage for a study of jobs of which nothing is collected.
std::string results_file(std::string const& path);
/// The same from a file, or from the results.json of a folder.
study read_study_file(std::string const& path);
/// The same without its runs, of which there may be none.
study read_study_header(checked_json const& from);
study_run read_study_run(checked_json const& from);

}  // namespace muster
