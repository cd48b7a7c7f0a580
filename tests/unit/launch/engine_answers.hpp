// Answers of the engines' own programs, which scheduler_sources gives to the code under test: captured texts
// (tests/fixtures/engine_answers.txt) or, where a test writes them itself, invented ones.
#pragma once

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "launch/engine/engine_table.hpp"
#include "tests/packed_files.hpp"

namespace muster::testing_engines {

inline std::string fixture(std::string const& name) {
    static auto const all = read_packed_files(MUSTER_FIXTURES "/engine_answers.txt");
    return all.at(name);
}

/// Outlives the sources() made of it.
struct answers {
    environment variables;
    std::map<std::string, command_output> said;  ///< by the command's words; all others are programs that are not there
    std::map<std::string, std::string> files;

    scheduler_sources sources() const {
        return {variables,
                [this](std::string const& path) -> std::optional<std::string> {
                    auto const found = files.find(path);
                    return found == files.end() ? std::nullopt : std::optional(found->second);
                },
                [this](std::vector<std::string> const& argv) {
                    auto const found = said.find(join(argv, " "));
                    return found == said.end() ? command_output{127, "", ""} : found->second;
                },
                [] { return node{}; }};
    }
};

/// A job on nodes n0, n1, …; a negative number of GPUs is one that nobody told. Eight processors each.
inline engine_job job_on(std::vector<int> const& ranks, std::vector<int> const& gpus,
                         scheduler_kind kind = scheduler_kind::slurm) {
    engine_job job;
    job.given = {kind, "42", {}, std::nullopt, true};
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        auto const name = "n" + std::to_string(i);
        job.given.nodes.push_back({name, name, 8, gpus[i] < 0 ? std::nullopt : std::optional(gpus[i]), 8});
    }
    job.map.ranks_per_node = ranks;
    job.this_host = "n0";
    job.shim = {"/bin/muster", "shim", "a.out"};
    job.scratch_dir = "/scratch";
    return job;
}

}  // namespace muster::testing_engines
