// `muster rerun`: a run again, from the record in its folder.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/process/self_program.hpp"
#include "base/process/text_file.hpp"
#include "base/text.hpp"
#include "base/trust/trusted_file.hpp"
#include "base/version.hpp"
#include "launch/commands/real_settings.hpp"
#include "launch/help/help.hpp"
#include "launch/jobs/check_program.hpp"
#include "launch/jobs/job_commands.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/job_record.hpp"

namespace muster {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::size_t most_named = 6;

/// What can be repeated of a run.
struct recorded_run {
    std::string version;
    std::string working_dir;
    std::string job_id;
    std::vector<std::string> command;
    std::vector<std::string> options;
    std::vector<std::string> left_out;
};

recorded_run read_recorded(std::string const& folder) {
    auto const path = folder + "/run.json";
    // It says what runs.
    if (auto const why = distrust(path); !why.empty())
        throw error(errc::config, fmt::format("{}: not read: {}; copy the folder to a place of your own", path, why));
    auto const text = read_small_file(path, "record of a run");
    if (!text) throw error(errc::usage, fmt::format("no {}; give the folder of a run, as muster show names it", path));
    try {
        auto const run = json::parse(*text);
        if (run.value("schema", "") != "muster.run/1")
            throw error(errc::config,
                        fmt::format("{}: this is no record of a run (muster.run/1); give the folder of a run", path));
        return {run.value("version", ""),
                run.value("working_dir", ""),
                run.value("allocation", json::object()).value("job_id", ""),
                run.at("command").get<std::vector<std::string>>(),
                run.value("options", std::vector<std::string>{}),
                run.value("variables_left_out", std::vector<std::string>{})};
    } catch (json::exception const& e) {
        throw error(errc::config, fmt::format("{}: this is no record of a run: {}; give the folder of a run", path, e.what()));
    }
}

/// Variables that differ in each job and shell.
bool is_passing(std::string_view name) {
    constexpr std::string_view prefixes[]{"SLURM",
                                          "PBS_",
                                          "MUSTER_",
                                          "PMI",
                                          "OMPI_",
                                          "PRTE",
                                          "SSH_",
                                          "XDG_",
                                          "CUDA_VISIBLE_DEVICES",
                                          "HOSTNAME",
                                          "TMPDIR",
                                          "PWD",
                                          "OLDPWD",
                                          "SHLVL",
                                          "_",
                                          "TERM",
                                          "OMP_NUM_THREADS",
                                          "ROCR_",
                                          "ZE_",
                                          "GPU_DEVICE_ORDINAL",
                                          "ENVIRONMENT",
                                          "NCPUS",
                                          "DISPLAY"};
    return std::any_of(std::begin(prefixes), std::end(prefixes), [&](std::string_view p) { return name.starts_with(p); });
}

/// The lines of the file `environment` as they were; of a value with line breaks only the first line is compared.
std::vector<std::string> differing_variables(std::string const& folder, environment const& now,
                                             std::vector<std::string> const& options) {
    std::vector<std::string> names;
    auto const text = read_text_file(folder + "/environment");
    auto const lines = now.shell_lines();
    for (auto const line : split(text, '\n')) {
        auto const equals = line.find('=');
        if (equals == std::string_view::npos || is_passing(line)) continue;
        auto const is_given = [&](std::string const& word) { return word.starts_with(line.substr(0, equals + 1)); };
        if (std::any_of(options.begin(), options.end(), is_given)) continue;  // by --env
        if (("\n" + lines).find(fmt::format("\n{}\n", line)) == std::string::npos) names.emplace_back(line.substr(0, equals));
    }
    return names;
}

std::string some_of(std::vector<std::string> names) {
    auto const all = names.size();
    names.resize(std::min(all, most_named));
    return join(names, ", ") + (all > most_named ? fmt::format(" and {} more", all - most_named) : "");
}

void tell_differences(recorded_run const& run, std::string const& folder, environment const& variables) {
    if (run.version != version())
        fmt::print(stderr, "muster: note: that run was of muster {}, this one is {}\n", run.version, version());
    std::vector<std::string> missing;
    for (auto const& name : run.left_out)
        if (!variables.has(name)) missing.push_back(name);
    if (!missing.empty())
        fmt::print(stderr,
                   "muster: note: that run had variables that its record leaves out as secrets, and which are not set now: {}\n",
                   some_of(missing));
    if (auto const names = differing_variables(folder, variables, run.options); !names.empty())
        fmt::print(stderr, "muster: note: variables that have other values now: {}\n", some_of(names));
}

/// A rerun leaves a folder of its own: one without %j would take the place of the first.
std::vector<std::string> with_own_folder(std::vector<std::string> options, std::string const& folder) {
    auto const at = std::find(options.begin(), options.end(), "--output-dir");
    if (at == options.end() || at + 1 == options.end() || (at + 1)->find("%j") != std::string::npos) return options;
    *(at + 1) = fs::path(folder).lexically_normal().string() + ".again-%j";
    return options;
}

[[noreturn]] void become_muster(std::vector<std::string> const& words) {
    auto const path = self_program().string();
    std::vector<char*> argv;
    for (auto const& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    std::fflush(nullptr);
    ::execv(path.c_str(), argv.data());
    throw_system("execv", path);
}

void change_folder(std::string const& folder) {
    std::error_code fault;
    fs::current_path(folder, fault);
    if (fault)
        throw error(errc::not_found, fmt::format("the folder of that run, {}: {}; make it again", folder, fault.message()));
}

}  // namespace

int rerun_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("rerun", options_first("rerun", args), real_settings(variables));
    if (print_help_if_asked("rerun", given)) return 0;
    if (given.command.size() != 1) throw error(errc::usage, "muster rerun takes the folder of a run, as muster show names it");
    auto const folder = fs::absolute(given.command.front()).lexically_normal().string();
    auto const run = read_recorded(folder);
    tell_differences(run, folder, variables);
    std::vector<std::string> words{"muster"};
    if (given.flag("submit")) {
        auto const record = find_job_record(run.job_id, variables);
        if (!record)
            throw error(errc::usage,
                        fmt::format("{}: muster has no record of {}; leave out --submit, or submit it by muster submit", folder,
                                    run.job_id.empty() ? "a job that it ran in" : "job " + run.job_id));
        change_folder(record->working_dir);
        words.emplace_back("submit");
        words.insert(words.end(), record->arguments.begin(), record->arguments.end());
    } else {
        change_folder(run.working_dir);
        check_program(run.command, variables, false);
        words.emplace_back("run");
        auto const options = with_own_folder(run.options, folder);
        words.insert(words.end(), options.begin(), options.end());
        words.emplace_back("--");
        words.insert(words.end(), run.command.begin(), run.command.end());
    }
    fmt::print(stderr, "muster: {}\n", shell_join(words));
    become_muster(words);
}

}  // namespace muster
