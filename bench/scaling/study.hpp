// A scaling study: its runs, and their JSON (schema "muster.results/1").
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/tools/machine.hpp"
#include "bench/training/train_record.hpp"

namespace muster {

/// One run of one number of ranks. Nothing is averaged away: a study holds every one.
struct study_run {
    int ranks = 1;
    int repetition = 0;           ///< from 0
    int order = 0;                ///< when it ran among all runs of the study, from 0: the numbers of ranks take turns
    std::string started;          ///< UTC, ISO 8601
    double wall_s = 0;            ///< of the whole command: launching the ranks, start-up, training, test, exit
    double load_before = 0;       ///< one-minute load average when it began
    bool oversubscribed = false;  ///< more ranks than cores
    bool simulated = false;
    train_record train;
    bool operator==(study_run const&) const = default;
};

struct study {
    std::string created;         ///< UTC, ISO 8601
    std::string command;         ///< the scale command, as a line for a shell
    std::string launch_command;  ///< the command of the first run
    machine_facts machine;
    std::vector<study_run> runs;
    bool operator==(study const&) const = default;
};

inline constexpr char const* study_schema = "muster.results/1";

nlohmann::json to_json(study const& results);
/// Throws errc::invalid_data naming `origin` and the place.
study read_study(nlohmann::json const& document, std::string const& origin);

}  // namespace muster
