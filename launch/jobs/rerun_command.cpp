// `muster rerun` repeats a run from the record in its folder.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string_view>

#include "base/command/print_note.hpp"
#include "base/process/files.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/version.hpp"
#include "launch/commands/commands.hpp"
#include "launch/help/help.hpp"
#include "launch/jobs/check_program.hpp"
#include "launch/jobs/job_commands.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/job_record.hpp"
#include "launch/jobs/recorded_run.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_named = 6;

/// Returns whether a variable differs in each job and shell.
bool is_passing(std::string_view name) {
    constexpr std::string_view prefixes[]{"SLURM",
                                          "PBS_",
                                          "FLUX_",
                                          "MUSTER_",
                                          "PMI",
                                          "OMPI_",
                                          "PRTE",
                                          "HYDRA_BOOTSTRAP",
                                          "HYDRA_LAUNCHER",
                                          "I_MPI_HYDRA_BOOTSTRAP",
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

/// Returns the variables that differ from the file `environment`; compares only the first line of a value with line breaks.
std::vector<std::string> differing_variables(std::string const& folder, environment const& now,
                                             std::vector<std::string> const& options) {
    std::vector<std::string> names;
    auto const text = read_text_file(folder + "/environment");
    auto const lines = now.shell_lines();
    auto const present = split(lines, '\n');
    std::set<std::string_view> const same(present.begin(), present.end());
    for (auto const line : split(text, '\n')) {
        auto const equals = line.find('=');
        if (equals == std::string_view::npos || is_passing(line)) continue;
        auto const is_given = [&](std::string const& word) { return word.starts_with(line.substr(0, equals + 1)); };
        if (std::ranges::any_of(options, is_given)) continue;  // --env sets it
        if (!same.contains(line)) names.emplace_back(line.substr(0, equals));
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
        print_note("that run was of muster {}, this one is {}", without_controls(run.version), version());
    std::vector<std::string> missing;
    for (auto const& name : run.left_out)
        if (!variables.has(name)) missing.push_back(name);
    if (!missing.empty())
        print_note("that run had variables that its record leaves out as secrets, and which are not set now: {}",
                   without_controls(some_of(missing)));
    if (auto const names = differing_variables(folder, variables, run.options); !names.empty())
        print_note("variables that have other values now: {}", without_controls(some_of(names)));
}

/// Returns the number of the array that a run was a task of, from its variables; "" if it was not one.
std::string array_of_run(std::string const& folder) {
    constexpr std::string_view name = "SLURM_ARRAY_JOB_ID=";
    auto const variables = read_text_file(folder + "/environment");
    for (auto const line : split(variables, '\n'))
        if (line.starts_with(name)) return std::string(line.substr(name.size()));
    return {};
}

/// Sets, and reports, the variables that the script of that run's job had set and that are not set now.
environment with_script_variables(environment variables, std::string const& folder) {
    std::vector<std::string> set;
    auto const had = read_script_variables(folder);
    for (auto const& [name, value] : had) {
        if (variables.has(name)) continue;
        variables.set(name, value);
        set.push_back(fmt::format("{}={}", name, shell_quote(value)));
    }
    if (!set.empty())
        fmt::print(stderr, "muster: note: as the script of that run's job had it: {}\n", without_controls(join(set, " ")));
    return variables;
}

/// A job's script makes the folder on each of its nodes, but a run without a job does not.
void check_results_folder(environment const& variables) {
    auto const made = variables.get_or("MUSTER_SYNC_DIR", "");
    if (made.empty() || is_folder(made)) return;
    throw_error(errc::usage,
                "that run wrote its results to '{}', which its job's script had made on each node (--artifacts) and which is not "
                "there; make it by muster run --ranks-per-node 1 -- mkdir -p {}, or submit the job again by --submit",
                made, shell_quote(made));
}

void change_folder(std::string const& folder) {
    std::error_code fault;
    fs::current_path(folder, fault);
    if (fault) throw_error(errc::not_found, "the folder of that run, {}: {}; make it again", folder, fault.message());
}

}  // namespace

int rerun_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("rerun", options_first("rerun", args), real_settings(variables));
    if (print_help_if_asked("rerun", given)) return 0;
    if (given.command.size() != 1) throw error(errc::usage, "muster rerun takes the folder of a run, as muster show names it");
    auto const folder = fs::absolute(given.command.front()).lexically_normal().string();
    auto const run = read_recorded_run(folder);
    tell_differences(run, folder, variables);
    std::vector<std::string> words{"muster"};
    auto own = variables;
    if (given.flag("submit")) {
        auto const cluster = [&] { return run.cluster.empty() ? find_cluster(variables) : run.cluster; };
        auto record = find_job_record(run.job_id, variables, cluster);
        if (!record) record = find_job_record(array_of_run(folder), variables, cluster);
        if (!record)
            throw_error(errc::usage, "{}: muster has no record of {}; leave out --submit, or submit it by muster submit", folder,
                        run.job_id.empty() ? "a job that it ran in" : "job " + run.job_id);
        change_folder(record->working_dir);
        words.emplace_back("submit");
        if (!given.flag("check")) words.emplace_back("--no-check");
        words.insert(words.end(), record->arguments.begin(), record->arguments.end());
    } else {
        if (auto const names = missing_secrets(run.options, variables); !names.empty())
            throw_error(errc::usage,
                        "that run was given {} by --env, and its record leaves out secrets; set {} again, and then rerun",
                        join(names, ", "), names.size() == 1 ? "it" : "them");
        change_folder(run.launched_in);
        own = with_script_variables(std::move(own), folder);
        if (given.flag("check")) check_results_folder(own);
        if (given.flag("check")) check_program(run.command, variables, {.working_dir = run.working_dir});
        words.emplace_back("run");
        auto const options = with_own_folder(run.options, folder);
        words.insert(words.end(), options.begin(), options.end());
        words.emplace_back("--");
        words.insert(words.end(), run.command.begin(), run.command.end());
    }
    fmt::print(stderr, "muster: {}\n", without_controls(shell_join(words)));
    replace_program(self_program().string(), words, own);
}

}  // namespace muster
