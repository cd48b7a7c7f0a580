#include <fmt/format.h>
#include <signal.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
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

namespace {

constexpr int search_share = 20;      ///< a search takes at most this part of the time
constexpr int most_entries = 20'000;  ///< that are looked at for a run folder

/// A job that starts muster run several times, or that is started again, has several: ID, ID.2, ID.3.
std::vector<std::string> list_runs(std::string const& first_folder) {
    std::vector<std::string> folders;
    std::error_code fault;
    for (int n = 1;; ++n) {
        auto const folder = n == 1 ? first_folder : fmt::format("{}.{}", first_folder, n);
        if (!fs::is_directory(folder, fault)) return folders;
        folders.push_back(folder);
    }
}

bool is_run_of(std::string const& folder, std::string const& job) {
    auto const run = read_run(folder);
    auto const at = nlohmann::json::json_pointer("/allocation/job_id");
    return run.is_object() && run.contains(at) && run[at].is_string() && run[at].get<std::string>() == job;
}

/// Of a folder in this one, of whatever name, or one whose name holds the number in a folder of this one; empty: there is none.
std::string search_run_folder(std::string const& job) {
    std::error_code fault;
    int left = most_entries;
    std::vector<std::string> found;
    auto const here = fs::current_path(fault);
    for (fs::directory_iterator entry(here, fault), end; !fault && entry != end && left > 0; entry.increment(fault), --left) {
        std::error_code inner;
        if (!entry->is_directory(inner)) continue;
        if (is_run_of(entry->path(), job)) found.push_back(entry->path().string());
        for (fs::directory_iterator below(entry->path(), inner); !inner && below != end && left > 0;
             below.increment(inner), --left)
            if (below->path().filename().string().find(job) != std::string::npos && is_run_of(below->path(), job))
                found.push_back(below->path().string());
    }
    // The first of ID, ID.2, ID.3 has the shortest name.
    auto const first = std::ranges::min_element(found, {}, [](auto const& path) { return path.size(); });
    return first == found.end() ? std::string() : *first;
}

}  // namespace

job_files find_job_files(std::string const& asked, std::optional<job_record> const& record) {
    auto const id = full_job_number(asked, record);
    job_files files;
    std::error_code fault;
    auto const here = fs::current_path(fault).string() + "/" + runs_folder;
    files.first_folder = with_job_number(record ? record->run_folder : here + "/%j", id);
    // One that is made up for --output-dir has no scheduler.
    files.output = record && !record->scheduler.empty() ? record->output : fmt::format("{}/{}.out", here, id);
    // The record of an array or a chain has the first number in it.
    if (record && record->id != id && !files.output.empty()) {
        auto const known = fs::path(files.output);
        files.output = (known.parent_path() / (id + known.extension().string())).string();
    }
    if (!files.output.empty() && !fs::exists(files.output, fault)) files.output.clear();
    files.run_folders = list_runs(files.first_folder);
    return files;
}

std::optional<job_record> find_job_record(std::string const& id, settings_result const& given, environment const& variables) {
    auto record = find_job_record(id, variables);
    // A record knows better than what holds for runs in general.
    bool const holds = record ? given.get("output-dir").from == setting_layer::option : given.given("output-dir");
    if (!holds) return record;
    if (!record) record.emplace().id = id;
    record->run_folder = absolute_path(given.text("output-dir"));
    return record;
}

/// What `muster run --output-dir` in a plain script has made: DIR with the job's number in it, or DIR alone with a record of that job.
void job_file_finder::find_run_folders(job_number const& job, job_files& files) {
    using clock = std::chrono::steady_clock;
    auto& known = looked_for_[job.shown];
    if (auto const now = clock::now(); known.first_folder.empty() && now >= known.again_at) {
        known.first_folder = search_run_folder(job.raw);
        known.again_at = clock::now() + search_share * (clock::now() - now);
    }
    if (known.first_folder.empty()) return;
    files.first_folder = known.first_folder;
    files.run_folders = list_runs(known.first_folder);
}

void job_file_finder::find_paths(job_number const& job, job_files& files) {
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
}

job_files job_file_finder::find(job_number const& job, std::optional<job_record> const& record) {
    auto files = find_job_files(job.raw, record);
    if (files.output.empty() && kind_) find_paths(job, files);
    if (files.run_folders.empty() && !record) find_run_folders(job, files);
    return files;
}

}  // namespace muster
