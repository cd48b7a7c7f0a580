// Each folder tests/fixtures/<scheduler>/<case> that has a file `expected` is a job: `env` its variables, `files` what lies on
// its host, `commands` what its commands answer ("$ the command" and the lines below it; a command that is not there is not
// found). What is read of it must be `expected`: the JSON of `muster hosts`, or "error: " and the message. Cases called
// documented_* are made from documentation; all others were captured on real clusters. MUSTER_UPDATE_FIXTURES=1 writes `expected`
// anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/commands/commands.hpp"
#include "launch/scheduler/read_allocation.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> contents(fs::path const& path) {
    std::ifstream file(path);
    if (!file || !fs::is_regular_file(path)) return std::nullopt;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

environment variables_of(fs::path const& folder) {
    environment variables;
    std::istringstream lines(contents(folder / "env").value_or(""));
    for (std::string line; std::getline(lines, line);)
        if (auto const equals = line.find('='); equals != std::string::npos)
            variables.set(line.substr(0, equals), line.substr(equals + 1));
    return variables;
}

std::map<std::string, std::string> answers_of(fs::path const& folder) {
    std::map<std::string, std::string> answers;
    std::string command;
    std::istringstream lines(contents(folder / "commands").value_or(""));
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("$ "))
            answers[command = line.substr(2)];
        else
            answers[command] += line + "\n";
    }
    return answers;
}

std::string read(fs::path const& folder) {
    auto const variables = variables_of(folder);
    auto const answers = answers_of(folder);
    scheduler_sources const sources{
        variables, [&](std::string const& path) { return contents(folder / "files" / path.substr(1)); },
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
            if (fs::exists(entry.path() / "env")) all.push_back(entry.path());
    return all;
}

TEST(captured_jobs, are_read_as_expected) {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
    auto const all = cases();
    EXPECT_GT(all.size(), 60u);
    for (auto const& folder : all) {
        SCOPED_TRACE(folder.string());
        auto const given = read(folder);
        if (std::getenv("MUSTER_UPDATE_FIXTURES") != nullptr) std::ofstream(folder / "expected") << given;
        EXPECT_EQ(given, contents(folder / "expected").value_or("(no file `expected`)"));
    }
}

}  // namespace
}  // namespace muster
