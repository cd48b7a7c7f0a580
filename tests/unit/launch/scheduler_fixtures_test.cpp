// Each tests/fixtures/<scheduler>/<case>.job is a job, packed in one text: `env` its variables, `files/…` what lies on its host,
// `commands` what its commands answer ("$ the command" and the lines below it; a command that is not there is not found). What is
// read of it must be `expected`: the JSON of `muster hosts`, or "error: " and the message. Cases called documented_* are made from
// documentation; all others were captured on real clusters. MUSTER_UPDATE_FIXTURES=1 writes `expected` anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/commands/commands.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "tests/packed_files.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using packed_files = std::map<std::string, std::string>;

std::optional<std::string> find(packed_files const& files, std::string const& name) {
    auto const found = files.find(name);
    return found == files.end() ? std::nullopt : std::optional(found->second);
}

std::map<std::string, std::string> answers_of(packed_files const& job) {
    std::map<std::string, std::string> answers;
    std::string command;
    std::istringstream lines(find(job, "commands").value_or(""));
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("$ "))
            answers[command = line.substr(2)];
        else
            answers[command] += line + "\n";
    }
    return answers;
}

std::string read(packed_files const& job) {
    auto const variables = variables_in(job.at("env"));
    auto const answers = answers_of(job);
    scheduler_sources const sources{
        variables, [&](std::string const& path) { return find(job, "files" + path); },
        [&](std::vector<std::string> const& argv) {
            auto const found = answers.find(join(argv, " "));
            return found == answers.end() ? command_output{127, "", "not found"} : command_output{0, found->second, ""};
        },
        [] {
            return node{"thishost", "127.0.0.1", 1, 0, 1};
        }};
    try {
        return hosts_json(read_allocation(sources, {}));
    } catch (error const& e) {
        return std::string("error: ") + e.what() + "\n";
    }
}

std::vector<fs::path> cases() {
    std::vector<fs::path> all;
    for (auto const* scheduler : {"slurm", "pbs", "cobalt", "lsf", "flux"})
        for (auto const& entry : fs::directory_iterator(fs::path(MUSTER_FIXTURES) / scheduler))
            if (entry.path().extension() == ".job") all.push_back(entry.path());
    return all;
}

/// Writes `expected`, the last part of a job's text, anew.
void update(fs::path const& file, std::string const& expected) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    std::string const heading = "==> expected <==\n";
    std::ofstream(file) << text.str().substr(0, text.str().find(heading)) << heading << expected;
}

TEST(captured_jobs, are_read_as_expected) {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
    auto const all = cases();
    EXPECT_GT(all.size(), 60u);
    for (auto const& file : all) {
        SCOPED_TRACE(file.string());
        auto const job = read_packed_files(file.string());
        auto const given = read(job);
        if (std::getenv("MUSTER_UPDATE_FIXTURES") != nullptr) update(file, given);
        EXPECT_EQ(given, find(job, "expected").value_or("(no `expected`)"));
    }
}

}  // namespace
}  // namespace muster
