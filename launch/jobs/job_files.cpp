#include <fmt/format.h>
#include <signal.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/trust/foreign_json.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/job_plan.hpp"
#include "launch/record/run_record.hpp"
#include "launch/settings/setting.hpp"
#include "launch/system/network.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

nlohmann::json read_run(std::string const& run_folder) {
    return parse_json_or_discard<nlohmann::json>(read_text_file(run_folder + "/run.json"));
}

}  // namespace

bool was_killed_here(std::string const& run_folder, std::string const& number) {
    auto const run = read_run(run_folder);
    auto const text = [&](char const* pointer) {
        auto const at = nlohmann::json::json_pointer(pointer);
        return run.contains(at) && run[at].is_string() ? run[at].get<std::string>() : std::string();
    };
    auto const launcher = parse_integer(number);  // outside of a job the folder has the launcher's process id
    if (!launcher || *launcher < 1 || *launcher > INT32_MAX || !text("/allocation/job_id").empty()) return false;
    return text("/host") == short_host_name() && ::kill(static_cast<pid_t>(*launcher), 0) != 0 && errno == ESRCH;
}

std::optional<int> read_run_exit(std::string const& run_folder) {
    auto const run = read_run(run_folder);
    if (!run.is_object() || !run.contains("exit") || !run["exit"].is_object()) return std::nullopt;
    auto const& code = run["exit"].value("code", nlohmann::json());
    return code.is_number_integer() ? std::optional(code.get<int>()) : std::nullopt;
}

std::optional<int> last_run_exit(job_files const& files) {
    return files.run_folders.empty() ? std::nullopt : read_run_exit(files.run_folders.back());
}

bool had_nothing_to_do(job_files const& files) {
    // As jobscripts/templates/body.mustache has it.
    return files.run_folders.empty() && !files.output.empty() &&
           read_text_file(files.output).find(": the program has ended with 0 already; ") != std::string::npos;
}

namespace {

/// The number of Slurm's task by the variables of its run in this folder: its index, if it is one of this array.
std::optional<std::int64_t> slurm_index(fs::path const& run_folder, std::string const& array) {
    std::string of_array, index;
    auto const text = read_text_file((run_folder / "environment").string());
    for (auto const line : split(text, '\n')) {
        if (line.starts_with("SLURM_ARRAY_JOB_ID=")) of_array = line.substr(19);
        if (line.starts_with("SLURM_ARRAY_TASK_ID=")) index = line.substr(20);
    }
    return of_array == array ? parse_integer(index) : std::nullopt;
}

/// Of PBS, whose tasks' folders have the index in their names ("12[3].server"; the second run of a task ends in ".2").
std::optional<std::int64_t> pbs_index(std::string const& name, std::string const& array, std::size_t open) {
    auto const close = name.find(']');
    if (close == std::string::npos || close <= open || !name.starts_with(array.substr(0, open + 1))) return std::nullopt;
    auto const index = parse_integer(std::string_view(name).substr(open + 1, close - open - 1));
    // Without the server's name, as it is written there.
    bool const same = array.size() == open + 2 || name.substr(close + 1) == array.substr(open + 2);
    return index && *index >= 0 && same ? index : std::nullopt;
}

}  // namespace

std::vector<job_number> list_tasks(std::string const& asked, std::optional<job_record> const& record) {
    auto const id = full_job_number(asked, record);
    auto const open = id.find("[]");
    bool const slurm = parse_integer(id).has_value();
    if (open == std::string::npos && !slurm) return {};
    std::map<std::int64_t, job_number> tasks;
    std::error_code fault;
    auto const folder = fs::path(find_job_files(id, record).first_folder).parent_path();
    for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end; entry.increment(fault)) {
        auto const name = entry->path().filename().string();
        auto const index = slurm ? slurm_index(entry->path(), id) : pbs_index(name, id, open);
        if (!index || (slurm && name.find('.') != std::string::npos)) continue;
        tasks.try_emplace(*index, job_number{slurm ? fmt::format("{}_{}", id, *index) : name, name});
    }
    std::vector<job_number> list;
    for (auto& [index, task] : tasks) list.push_back(std::move(task));
    if (list.empty() && slurm)
        for (auto const& task : list_slurm_output_tasks(id)) list.push_back({task, task});
    return list;
}

std::vector<job_number> list_parts(std::vector<queued_job> const& jobs, std::string const& asked,
                                   std::optional<job_record> const& record) {
    std::vector<queued_job> parts;
    bool is_array = false;
    for (auto const& job : jobs) {
        if (!is_meant(job, asked)) continue;
        is_array = is_array || job.id.find_first_of("_[") != std::string::npos;
        // The row of tasks that have not begun has the number that its last task will have.
        if (job.phase != job_phase::waiting || job.id.find('[') == std::string::npos) parts.push_back(job);
    }
    if (parts.empty() || is_array)
        for (auto const& task : list_tasks(asked, record)) {
            queued_job one;
            one.id = task.shown;
            one.raw_id = task.raw;
            if (std::none_of(parts.begin(), parts.end(), [&](auto const& each) { return each.id == task.shown; }))
                parts.push_back(one);
        }
    sort_tasks(parts);
    std::vector<job_number> numbers;
    for (auto const& part : parts) numbers.push_back({part.id, part.raw_id});
    return numbers;
}

job_files find_job_files(std::string const& asked, std::optional<job_record> const& record) {
    auto const id = full_job_number(asked, record);
    job_files files;
    std::error_code fault;
    auto const here = fs::current_path(fault).string() + "/" + runs_folder;
    files.first_folder = with_job_number(record ? record->run_folder : here + "/%j", id);
    files.output = record ? record->output : fmt::format("{}/{}.out", here, id);
    // The record of an array or a chain has the first number in it.
    if (record && record->id != id && !files.output.empty()) {
        auto const known = fs::path(files.output);
        files.output = (known.parent_path() / (id + known.extension().string())).string();
    }
    if (!files.output.empty() && !fs::exists(files.output, fault)) files.output.clear();
    // A job that starts muster run several times, or that is started again, has several: ID, ID.2, ID.3.
    for (int n = 1;; ++n) {
        auto const folder = n == 1 ? files.first_folder : fmt::format("{}.{}", files.first_folder, n);
        if (!fs::is_directory(folder, fault)) break;
        files.run_folders.push_back(folder);
    }
    return files;
}

job_files job_file_finder::find(job_number const& job, std::optional<job_record> const& record) {
    auto files = find_job_files(job.raw, record);
    if (!files.output.empty() || !kind_) return files;
    auto const [known, is_new] = asked_.try_emplace(job.shown);
    if (is_new) {
        queued_job one;
        one.id = job.shown;
        one.raw_id = job.raw;
        known->second = find_job_paths(*kind_, one, variables_);
    }
    auto const& [output, errors] = known->second;
    std::error_code fault;
    if (fs::is_regular_file(output, fault)) files.output = output;
    if (errors != output && fs::is_regular_file(errors, fault)) files.errors = errors;
    return files;
}

}  // namespace muster
