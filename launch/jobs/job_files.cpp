#include <fmt/format.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include "base/process/files.hpp"
#include "base/process/run_captured.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/trust/foreign_json.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/job_plan.hpp"
#include "launch/jobs/logs/sweep_results.hpp"
#include "launch/jobs/queue/output_sharers.hpp"
#include "launch/record/run_record.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/settings/setting.hpp"
#include "launch/system/network.hpp"
#include "launch/system/process_stat.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

nlohmann::json read_run(std::string const& run_folder) {
    return parse_json_or_discard<nlohmann::json>(read_text_file(run_folder + "/run.json"));
}

}  // namespace

std::optional<std::string> find_gone_process(std::string const& run_folder) {
    auto const run = read_run(run_folder);
    auto const number = [&](char const* pointer) {
        auto const at = nlohmann::json::json_pointer(pointer);
        return run.contains(at) && run[at].is_number_unsigned() ? run[at].get<std::uint64_t>() : 0;
    };
    auto const pid = number("/process/pid"), ticks = number("/process/start_ticks");
    auto const here = short_host_name();
    if (pid == 0 || pid > INT32_MAX || ticks == 0 || text_at(run, "/host") != here) return std::nullopt;
    auto const now = read_process_stat(static_cast<pid_t>(pid));
    if (now && now->lives() && now->start_ticks == ticks) return std::nullopt;
    return fmt::format("process {} of {}", pid, here);
}

std::map<int, std::string> rank_folders(std::string const& run_folder, std::string_view prefix) {
    std::map<int, std::string> folders;
    for (auto const& path : folder_entries(run_folder)) {
        auto const name = path.filename().string();
        auto const number = name.starts_with(prefix) ? parse_integer(std::string_view(name).substr(prefix.size())) : std::nullopt;
        if (number && *number >= 0 && *number < 10'000'000) folders.emplace(static_cast<int>(*number), path.string());
    }
    return folders;
}

std::optional<run_end> read_run_end(std::string const& run_folder) {
    auto const run = read_run(run_folder);
    nlohmann::json::json_pointer const code("/exit/code");
    if (!run.contains(code) || !run[code].is_number_integer()) return std::nullopt;
    return run_end{run[code].get<int>(), text_at(run, "/ended_at"), text_at(run, "/exit/cause")};
}

std::optional<int> last_run_exit(job_files const& files) {
    auto const end = files.run_folders.empty() ? std::nullopt : read_run_end(files.run_folders.back());
    return end ? std::optional(end->code) : std::nullopt;
}

bool had_nothing_to_do(job_files const& files) {
    // This text is that of jobscripts/templates/body.mustache.
    return files.run_folders.empty() && !files.output.empty() &&
           read_text_file(files.output).find(": the program has ended with 0 already; ") != std::string::npos;
}

namespace {

/// A Slurm task, read from its run's variables in this folder: its index, and its job's number if it belongs to this array.
struct slurm_task {
    std::int64_t index;
    std::string raw;
};
std::optional<slurm_task> slurm_task_of(fs::path const& run_folder, std::string const& array) {
    std::string of_array, index, raw;
    auto const text = read_text_file((run_folder / "environment").string());
    for (auto const line : split(text, '\n')) {
        if (line.starts_with("SLURM_ARRAY_JOB_ID=")) of_array = line.substr(19);
        if (line.starts_with("SLURM_ARRAY_TASK_ID=")) index = line.substr(20);
        if (line.starts_with("SLURM_JOB_ID=")) raw = line.substr(13);
    }
    auto const number = of_array == array ? parse_integer(index) : std::nullopt;
    return number ? std::optional(slurm_task{*number, raw}) : std::nullopt;
}

std::optional<std::int64_t> slurm_index(fs::path const& run_folder, std::string const& array) {
    auto const task = slurm_task_of(run_folder, array);
    return task ? std::optional(task->index) : std::nullopt;
}

/// Returns the index of a PBS task, whose folder has it in its name ("12[3].server"; the second run of a task ends in ".2").
std::optional<std::int64_t> pbs_index(std::string const& name, std::string const& array, std::size_t open) {
    auto const close = name.find(']');
    if (close == std::string::npos || close <= open || !name.starts_with(array.substr(0, open + 1))) return std::nullopt;
    auto const index = parse_integer(std::string_view(name).substr(open + 1, close - open - 1));
    // The array's number may be written without the server's name.
    bool const same = array.size() == open + 2 || name.substr(close + 1) == array.substr(open + 2);
    return index && *index >= 0 && same ? index : std::nullopt;
}

/// Returns the array of a task that the user named by its index: "12" of "12_3"; nothing for anything but a task of Slurm.
std::optional<std::string> array_of_task(std::string const& asked) {
    auto const at = asked.find('_');
    if (at == std::string::npos) return std::nullopt;
    auto const array = std::string_view(asked).substr(0, at), index = std::string_view(asked).substr(at + 1);
    if (!parse_integer(array) || !parse_integer(index)) return std::nullopt;
    return std::string(array);
}

}  // namespace

std::vector<job_number> list_tasks(std::string const& asked, std::optional<job_record> const& record) {
    if (auto const array = array_of_task(asked)) {  // its folder has another number
        auto tasks = list_tasks(*array, record);
        std::erase_if(tasks, [&](job_number const& task) { return task.shown != asked || !parse_integer(task.raw); });
        return tasks;
    }
    auto const id = full_job_number(asked, record);
    auto const open = id.find("[]");
    bool const slurm = parse_integer(id).has_value();
    if (open == std::string::npos && !slurm) return {};
    std::map<std::int64_t, job_number> tasks;
    for (auto const& folder : folder_entries(fs::path(find_job_files(id, record).first_folder).parent_path())) {
        auto const name = folder.filename().string();
        if (!slurm) {
            if (auto const index = pbs_index(name, id, open)) tasks.try_emplace(*index, job_number{name, name});
        } else if (auto const task = slurm_task_of(folder, id)) {  // each run of a task with several runs says the same
            tasks.try_emplace(task->index,
                              job_number{fmt::format("{}_{}", id, task->index), parse_integer(task->raw) ? task->raw : name});
        }
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
        // The row of tasks that have not begun carries the number that its last task will have.
        if (job.phase != job_phase::waiting || job.id.find('[') == std::string::npos) parts.push_back(job);
    }
    if (parts.empty() || is_array)
        for (auto const& task : list_tasks(asked, record)) {
            queued_job one;
            one.id = task.shown;
            one.raw_id = task.raw;
            if (std::ranges::none_of(parts, [&](auto const& each) { return each.id == task.shown; })) parts.push_back(one);
        }
    sort_tasks(parts);
    std::vector<job_number> numbers;
    for (auto const& part : parts) numbers.push_back({part.id, part.raw_id});
    return numbers;
}

namespace {

constexpr int search_share = 20;      ///< a search takes at most one part in this many of the time
constexpr int most_entries = 20'000;  ///< that a search for run folders looks at
constexpr std::chrono::milliseconds answer_limit{60'000};
constexpr auto first_wait =
    std::chrono::seconds(2);  ///< before all jobs' records are asked for again for a job that has not begun its file
constexpr auto longest_wait = std::chrono::seconds(60);
constexpr std::time_t begin_within_s = 3;  ///< within this time a job that has started begins its file
constexpr std::time_t clock_slack_s = 10;  ///< between the clocks of a node, the file system and the scheduler
constexpr std::time_t former_by_s = 600;   ///< a scheduler takes longer before it reuses its numbers

std::string job_of_run(std::string const& folder) {
    return text_at(read_run(folder), "/allocation/job_id");
}

std::string start_of_run(std::string const& folder) {
    return text_at(read_run(folder), "/started_at");
}

/// Returns whether the run belongs to another job than `asked`. PBS' server may be left out; the record of a task asked for by
/// its index ("12_3") has another number.
bool is_other_job(std::string const& folder, std::string const& recorded, std::string const& asked) {
    if (recorded.empty() || recorded == asked) return false;
    if (auto const at = asked.find('_'); at != std::string::npos) {
        auto const index = slurm_index(folder, asked.substr(0, at));
        return !index || index != parse_integer(std::string_view(asked).substr(at + 1));
    }
    return !recorded.starts_with(asked + ".") && !asked.starts_with(recorded + ".");
}

/// Parses a time as records write it; nothing if it is not one.
std::optional<std::time_t> read_time(std::string const& text) {
    std::tm parts{};
    char const* const end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S%z", &parts);
    if (end == nullptr || *end != '\0') return std::nullopt;
    auto const offset_s = parts.tm_gmtoff;
    return ::timegm(&parts) - offset_s;
}

/// Returns whether the run in `folder` belongs to an older job, from before the scheduler began its numbers again.
bool is_former_job(std::string const& folder, std::string const& submitted_at) {
    auto const submitted = read_time(submitted_at), started = read_time(start_of_run(folder));
    return submitted && started && *started + former_by_s < *submitted;
}

/// Lists the folders of a job that starts muster run several times, or is started again: ID, ID.2, ID.3. `submitted_at` may be
/// empty.
void list_runs(std::string const& first_folder, std::string const& job, std::string const& submitted_at, job_files& files) {
    files.run_folders.clear();
    for (int n = 1;; ++n) {
        auto const folder = n == 1 ? first_folder : fmt::format("{}.{}", first_folder, n);
        if (!is_folder(folder)) return;
        if (auto const other = job_of_run(folder); is_other_job(folder, other, job))
            files.shared.push_back(
                {folder, true,
                 without_controls(fmt::format("{} holds a run of job {}, not of job {}; give each job a folder of its own, with "
                                              "%j in the name: --output-dir '{}-%j'",
                                              folder, other, job, fs::path(folder).filename().string()))});
        else if (is_former_job(folder, submitted_at))
            files.shared.push_back(
                {folder, true,
                 without_controls(fmt::format("{} holds a run of an earlier job {}, from before this one was submitted, so it is "
                                              "not shown",
                                              folder, job))});
        else
            files.run_folders.push_back(folder);
    }
}

void sort_by_start(std::vector<started_run>& runs) {
    std::ranges::sort(runs, [](auto const& a, auto const& b) {
        return std::tuple(a.started_at, a.folder.size(), a.folder) < std::tuple(b.started_at, b.folder.size(), b.folder);
    });
}

/// Returns the runs in this folder's subfolders and in theirs, whatever their names, by their jobs' numbers and in the order of
/// their starts.
std::map<std::string, std::vector<started_run>> search_run_folders() {
    std::error_code fault;
    int left = most_entries;
    std::map<std::string, std::vector<started_run>> found;
    auto const take = [&](fs::path const& folder) {
        if (auto const job = job_of_run(folder); !job.empty()) found[job].push_back({start_of_run(folder), folder.string()});
    };
    auto const here = fs::current_path(fault);
    for (fs::directory_iterator entry(here, fault), end; !fault && entry != end && left > 0; entry.increment(fault), --left) {
        std::error_code inner;
        if (!entry->is_directory(inner)) continue;
        take(entry->path());
        for (fs::directory_iterator below(entry->path(), inner); !inner && below != end && left > 0;
             below.increment(inner), --left)
            take(below->path());
    }
    for (auto& [job, runs] : found) sort_by_start(runs);
    return found;
}

/// Returns "12" of "12.2".
std::string without_run_number(std::string const& folder) {
    auto const dot = folder.rfind('.');
    return dot != std::string::npos && parse_integer(std::string_view(folder).substr(dot + 1)) ? folder.substr(0, dot) : folder;
}

/// Adds the runs that have started since: ID.2 after ID.
void add_later_runs(std::string const& job, std::vector<started_run>& runs) {
    auto const known = runs.size();
    for (std::size_t i = 0; i < runs.size(); ++i) {
        auto const first = without_run_number(runs[i].folder);
        bool const is_first = first == runs[i].folder;
        auto const number = is_first ? 1 : *parse_integer(std::string_view(runs[i].folder).substr(first.size() + 1));
        if (number >= most_entries) continue;  // a name that somebody gave it
        auto next = fmt::format("{}.{}", first, number + 1);
        if (std::ranges::find(runs, next, &started_run::folder) != runs.end() || job_of_run(next) != job) continue;
        auto started_at = start_of_run(next);
        runs.push_back({std::move(started_at), std::move(next)});
    }
    if (runs.size() > known) sort_by_start(runs);
}

/// Returns names for runs whose folders are not ID, ID.2, ID.3.
std::map<std::string, std::string> name_runs(std::vector<std::string> const& folders) {
    std::map<std::string, std::string> names;
    std::error_code fault;
    if (std::ranges::all_of(folders, [&](auto const& f) { return without_run_number(f) == without_run_number(folders[0]); }))
        return names;
    for (auto const& folder : folders) names[folder] = without_controls(fs::relative(folder, fault).string());
    return names;
}

}  // namespace

job_files find_job_files(std::string const& asked, std::optional<job_record> const& record) {
    auto const id = full_job_number(asked, record);
    job_files files;
    std::error_code fault;
    auto const here = fs::current_path(fault).string() + "/" + runs_folder;
    files.first_folder = with_job_number(record ? record->run_folder : here + "/%j", id);
    // A record made up for --output-dir has no scheduler.
    files.output = record && !record->scheduler.empty() ? record->output : fmt::format("{}/{}.out", here, id);
    // The record of an array or a chain contains the first number.
    if (record && record->id != id && !files.output.empty()) {
        auto const known = fs::path(files.output);
        files.output = (known.parent_path() / (id + known.extension().string())).string();
    }
    if (!files.output.empty() && !path_exists(files.output)) files.output.clear();
    list_runs(files.first_folder, id, record ? record->submitted_at : std::string(), files);
    return files;
}

std::optional<job_record> find_job_record(std::string const& id, settings_result const& given, environment const& variables) {
    auto record = find_job_record(id, variables);
    // A record knows more than the settings for runs in general, but less than an option.
    bool const holds = record ? given.get("output-dir").from == setting_layer::option : given.given("output-dir");
    if (!holds) return record;
    if (!record) record.emplace().id = id;
    record->run_folder = absolute_path(given.text("output-dir"));
    return record;
}

/// Finds what `muster run --output-dir` made in a plain script: DIR with the job's number in it, or DIR alone with a record of
/// that job.
void job_file_finder::find_run_folders(job_number const& job, job_files& files) {
    using clock = std::chrono::steady_clock;
    if (auto const now = clock::now(); now >= search_again_at_) {
        found_runs_ = search_run_folders();
        search_again_at_ = clock::now() + search_share * (clock::now() - now);
    }
    auto const found = found_runs_.find(job.raw);
    if (found == found_runs_.end()) return;
    add_later_runs(job.raw, found->second);
    files.first_folder = found->second.front().folder;
    for (auto const& run : found->second) files.run_folders.push_back(run.folder);
}

/// Returns where `muster submit` puts the files of this cluster's jobs in a folder that another cluster uses, as job_plan does;
/// nothing in other folders.
std::optional<job_record> job_file_finder::other_clusters_place() {
    std::error_code fault;
    auto const folder = fmt::format("{}/{}", fs::current_path(fault).string(), runs_folder);
    auto const first = std::string(trim(read_text_file(fmt::format("{}/{}", folder, cluster_file))));
    if (first.empty() || cluster().empty() || first == cluster()) return std::nullopt;
    job_record place;
    place.scheduler = to_string(queue_kind::slurm);
    place.output = fmt::format("{}/{}/ID.out", folder, cluster());
    place.run_folder = fmt::format("{}/{}/%j", folder, cluster());
    return place;
}

std::string job_file_finder::explain_failure(queued_job const& job) {
    bool const is_failure = kind_ == queue_kind::slurm && !explain_launch_failure(job, {}).empty();
    return is_failure ? explain_launch_failure(job, ask_paths({job.id, job.raw_id})) : std::string();
}

std::string const& job_file_finder::cluster() {
    if (!cluster_) cluster_ = kind_ == queue_kind::slurm ? find_cluster(variables_) : std::string();
    return *cluster_;
}

/// Drops files of other clusters: Slurm clusters number their jobs alike, and several may share a home directory.
void job_file_finder::drop_other_clusters(job_number const& job, std::optional<job_record> const& record, job_files& files) {
    if (is_federated(job.raw)) return;  // its number is unique among all clusters, and it may run in any
    auto const is_recorded = [&](std::string const& folder, std::string const& of) {  // as this job's
        if (!record || record->scheduler.empty()) return false;
        auto const named = record->cluster.empty() ? with_job_number(record->run_folder, job.raw) : std::string();
        return of == record->cluster || folder == named || without_run_number(folder) == named;
    };
    std::erase_if(files.run_folders, [&](std::string const& folder) {
        auto const of = text_at(read_run(folder), "/allocation/cluster");
        if (of.empty() || cluster().empty() || of == cluster() || is_recorded(folder, of)) return false;
        if (std::ranges::any_of(files.shared, [&](auto const& file) { return file.path == folder; })) return true;
        files.shared.push_back(
            {folder, true,
             without_controls(fmt::format("{} holds a run of job {} of the cluster {}, not of {}, so it is not shown; ask there",
                                          folder, job.shown, of, cluster()))});
        return true;
    });
}

job_paths const& job_file_finder::ask_paths(job_number const& job) {
    auto const [known, is_new] = asked_.try_emplace(job.shown);
    if (is_new) {
        queued_job one;
        one.id = job.shown;
        one.raw_id = job.raw;
        known->second = find_job_paths(*kind_, one, variables_);
    }
    return known->second;
}

void job_file_finder::find_paths(job_number const& job, job_files& files) {
    auto const& [output, errors] = ask_paths(job);
    auto const take = [&](std::string const& path, std::string& place) {
        if (!is_plain_file(path)) return;
        auto shared = find_sharer(job, path);
        if (!shared || !shared->is_others) place = path;
        if (shared) files.shared.push_back(*std::move(shared));
    };
    take(output, files.output);
    if (errors != output) take(errors, files.errors);
}

/// A Slurm job truncates its output file, so a file without a number in its name (`#SBATCH --output=train.out`) belongs to the
/// job that started last.
std::optional<shared_file> job_file_finder::find_sharer(job_number const& job, std::string const& path) {
    if (kind_ != queue_kind::slurm || has_own_name(path, job.shown, job.raw)) return std::nullopt;
    auto& known = sharers_[{job.shown, path}];
    std::error_code fault;
    auto const size = fs::file_size(path, fault);
    bool const is_anew = !fault && size < std::exchange(known.size, fault ? known.size : size);
    if (known.is_known && !is_anew) return known.found;
    if (auto const now = std::chrono::steady_clock::now(); now < known.again_at && !is_anew) return known.found;
    auto const answer = run_captured(slurm_words(slurm_ask::job_records), without_slurm_views(variables_), answer_limit);
    if (answer.exit_status != 0) return known.found;
    auto const sharers = find_output_sharers(answer.out, job.raw, path);
    auto const name = with_own_name(path);
    auto const advice = fmt::format("give each job a file of its own: #SBATCH --output={}", name);
    struct stat file {};
    // Until the job's node has truncated it, which takes a moment, the file is an earlier job's.
    bool const is_older =
        ::stat(path.c_str(), &file) == 0 && file.st_mtime + (sharers.is_first ? clock_slack_s : 0) < sharers.started_at;
    bool const is_begun = sharers.has_ended || std::time(nullptr) > sharers.started_at + begin_within_s;
    known.found.reset();
    known.is_known = sharers.has_started && is_begun && !is_older;
    known.wait = !sharers.has_started ? longest_wait
                 : is_older           ? std::clamp(2 * known.wait, first_wait, longest_wait)
                                      : first_wait;
    known.again_at = std::chrono::steady_clock::now() + known.wait;
    if (!sharers.later.empty())
        known.found = {path, true,
                       fmt::format("{} is also the output of job {}, which started later ({}): what job {} wrote is gone, or "
                                   "stands in it unmarked, so none of it is shown as that of job {}; {}",
                                   path, sharers.later, sharers.later_start, job.shown, job.shown, advice)};
    else if (!sharers.has_started || !is_begun)
        known.found = {path, true, {}};
    else if (is_older)
        known.found = {path, true,
                       fmt::format("{} was last written to before job {} started, so what it holds is that of an earlier job; {}",
                                   path, job.shown, advice)};
    else if (!sharers.before.empty())
        known.found = {path, false,
                       fmt::format("job {} still ran when job {} began {}, its output too: lines of both may be in it; {}",
                                   sharers.before, job.shown, path, advice)};
    return known.found;
}

void job_file_finder::note_end(std::string const& shown) {
    for (auto& [key, known] : sharers_)
        if (key.first == shown) {
            known.is_known = false;
            known.again_at = {};
        }
    search_again_at_ = {};
}

job_files job_file_finder::find(job_number const& job, std::optional<job_record> const& record) {
    auto files = find_job_files(job.raw, record ? with_task_folder(record, job.shown) : other_clusters_place());
    if (files.output.empty() && kind_) find_paths(job, files);
    drop_other_clusters(job, record, files);
    if (files.run_folders.empty()) {  // also for a submitted job, whose script may start runs with other folders
        find_run_folders(job, files);
        drop_other_clusters(job, record, files);
        if (record)
            std::erase_if(files.run_folders, [&](auto const& folder) { return is_former_job(folder, record->submitted_at); });
    }
    files.run_names = name_runs(files.run_folders);
    return files;
}

}  // namespace muster
