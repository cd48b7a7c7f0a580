#include "launch/jobs/queue/job_paths.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "base/process/files.hpp"
#include "base/text.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

/// Returns the text after `name` on its line, which qstat breaks and continues after a tab.
std::string value_of(std::string_view printed, std::string_view name) {
    std::string value;
    bool found = false;
    for (auto const line : split(printed, '\n')) {
        if (found && line.starts_with('\t')) {
            value += line.substr(1);
            continue;
        }
        if (found) break;
        auto const words = trim(line);
        if (!words.starts_with(name)) continue;
        found = true;
        value = words.substr(name.size());
    }
    return value;
}

/// Returns "host:/folder/file" without its host, and a folder with the name that PBS gives a file there.
std::string pbs_path(std::string value, std::string_view id, std::string_view ending) {
    if (auto const colon = value.find(":/"); colon != std::string::npos) value.erase(0, colon + 1);
    if (value.ends_with('/')) value += fmt::format("{}.{}", id, ending);
    return value;
}

std::string with_suffix_here(std::string_view suffix) {
    std::string found;
    std::error_code fault;
    for (auto const& path : folder_entries("."))
        if (path.filename().string().ends_with(suffix)) {
            if (!found.empty()) return {};  // there may be files of two servers
            found = fs::absolute(path, fault).lexically_normal().string();
        }
    return found;
}

}  // namespace

job_paths parse_job_paths(queue_kind kind, std::string_view printed, std::string_view id) {
    job_paths paths;
    if (kind == queue_kind::slurm) {
        paths = {value_of(printed, "StdOut="), value_of(printed, "StdErr=")};
    } else if (kind == queue_kind::pbs) {
        paths = {pbs_path(value_of(printed, "Output_Path = "), id, "OU"), pbs_path(value_of(printed, "Error_Path = "), id, "ER")};
        auto const joined = value_of(printed, "Join_Path = ");
        if (joined == "oe") paths.errors = paths.output;
        if (joined == "eo") paths.output = paths.errors;
    }
    return paths;
}

job_paths find_job_paths(queue_kind kind, queued_job const& job, environment const& variables) {
    if (kind == queue_kind::flux) return {};
    auto paths = parse_job_paths(kind, describe_job(kind, job.raw_id, variables), job.id);
    if (!paths.output.empty()) return paths;
    if (kind == queue_kind::pbs) {
        auto const number = job.id.substr(0, job.id.find('.'));
        return {with_suffix_here(fmt::format(".o{}", number)), with_suffix_here(fmt::format(".e{}", number))};
    }
    std::error_code fault;
    auto const usual = fs::current_path(fault) / fmt::format("slurm-{}.out", job.id);
    return {usual.string(), usual.string()};
}

std::string explain_launch_failure(queued_job const& job, job_paths const& paths) {
    constexpr int could_not_start = 128 + 53;  // slurmd records a signal that does not exist
    bool const is_one = job.phase == job_phase::ended && (job.reason == "JobLaunchFailure" || job.status == could_not_start);
    if (!is_one) return {};
    for (auto const& path : {paths.output, paths.errors})
        if (auto const folder = fs::path(path).parent_path(); !folder.empty() && !is_folder(folder))
            return fmt::format(
                "Slurm could not start it: the folder of its output file {} is missing; make it, and submit the job "
                "again: mkdir -p {}",
                path, shell_quote(folder.string()));
    return fmt::format(
        "Slurm could not start it on its node; look there whether it can write {}, and whether the job's folder is there",
        paths.output.empty() ? std::string("its output file") : paths.output);
}

std::vector<std::string> list_slurm_output_tasks(std::string const& array) {
    auto const beginning = fmt::format("slurm-{}_", array);
    std::map<std::int64_t, std::string> tasks;
    for (auto const& path : folder_entries(".")) {
        auto const name = path.filename().string();
        if (!name.starts_with(beginning) || !name.ends_with(".out")) continue;
        auto const index = parse_integer(std::string_view(name).substr(beginning.size(), name.size() - beginning.size() - 4));
        if (index) tasks.emplace(*index, fmt::format("{}_{}", array, *index));
    }
    std::vector<std::string> list;
    for (auto& [index, task] : tasks) list.push_back(std::move(task));
    return list;
}

}  // namespace muster
