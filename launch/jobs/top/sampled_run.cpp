#include "launch/jobs/top/sampled_run.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"
#include "launch/samples/session_samples.hpp"
#include "launch/scheduler/flux.hpp"
#include "launch/system/home_folder.hpp"
#include "launch/system/session_dir.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

using dated_folder = std::pair<fs::file_time_type, std::string>;
constexpr auto never = fs::file_time_type::min();

std::string samples_of(std::string const& folder) {
    return fmt::format("{}/{}", folder, samples_file);
}

/// Throws errc::config if the file or a folder on its way may not be read.
void refuse_unreadable(std::string const& path, int mode) {
    if (::access(path.c_str(), mode) == 0 || errno != EACCES) return;
    struct stat found {};
    auto of = fs::path(path);
    while (::stat(of.c_str(), &found) != 0 && of != of.parent_path()) of = of.parent_path();
    throw_error(
        errc::config,
        "cannot read {}: permission denied, and {} belongs to the user {}; ask that user to run muster top, or to let you "
        "read it",
        without_controls(path), without_controls(of.string()), name_of_user(found.st_uid));
}

/// Returns the folder with the newest samples, of any generation of the run; the run's own, and `never`, if none has any.
dated_folder find_newest_samples(std::string const& run_folder) {
    dated_folder newest{never, run_folder};
    std::error_code fault;
    for (auto const& folder : files_of_run(run_folder).run_folders)
        if (auto const at = fs::last_write_time(samples_of(folder), fault); at > newest.first) newest = {at, folder};
    return newest;
}

/// Returns the number of the job that this process is in; "": it is in none.
std::string own_job(environment const& variables) {
    for (auto const* const name : {"SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID", "FLUX_ENCLOSING_ID"})
        if (auto const id = variables.get_or(name, ""); !id.empty()) return plain_flux_id(id);
    return {};
}

/// Returns the folder of the job's run with the newest samples, or of its last run; nothing if it has none.
std::optional<std::string> find_run_of_job(std::string const& id, environment const& variables, std::string& looked_in) {
    auto const record = find_job_record(id, variables);
    auto parts = list_parts({}, id, record);
    if (parts.empty()) parts.push_back({id, id});
    job_file_finder finder(find_queue_or_nothing(variables), variables);
    std::optional<dated_folder> newest;
    for (auto const& part : parts) {
        auto const files = finder.find(part, record);
        looked_in = files.first_folder;
        for (auto const& folder : files.run_folders)
            if (auto const at = find_newest_samples(folder).first; !newest || at >= newest->first) newest = {at, folder};
    }
    return newest ? std::optional(newest->second) : std::nullopt;
}

/// Returns the newest run that this user has started on this node, of the job `id` if that is not empty.
std::optional<std::string> find_run_of_node(std::string const& id, environment const& variables) {
    for (auto const& folder : session_sample_folders(session_places(variables))) try {
            auto const samples = read_samples(folder);
            auto const path = fs::path(folder);
            if (samples && (id.empty() || samples->job == id))
                return path.filename().string().starts_with("generation.") ? path.parent_path().string() : folder;
        } catch (error const&) {
            continue;  // one run's fault must not hide another run
        }
    return std::nullopt;
}

sampled_run run_in_folder(std::string const& word) {
    auto const folder = files_of_run(word).first_folder;
    refuse_unreadable(folder, R_OK | X_OK);
    if (!is_folder(folder))
        throw_error(errc::not_found, "'{}' is no folder, and no number of a job; muster jobs lists yours",
                    without_controls(word));
    if (!path_exists(folder + "/run.json") && !path_exists(samples_of(folder)))
        throw_error(errc::not_found, "{} is no folder of a run: it has no run.json; name the --output-dir of muster run",
                    without_controls(folder));
    return sampled_run(folder);
}

}  // namespace

void sampled_run::look() {
    auto const gone = find_gone_process(folder_);  // comes before the search for an end, which it may have just written
    auto const [written, folder] = find_newest_samples(folder_);
    auto const file = samples_of(folder);
    refuse_unreadable(written == never ? folder : file, written == never ? R_OK | X_OK : R_OK);
    auto found = read_samples(folder);
    if (!found && !samples_ && path_exists(file))
        throw_error(errc::config, "{} holds no samples that this muster can read; use the muster of the run",
                    without_controls(file));
    if (found) samples_ = std::move(found);
    auto const end = read_run_end(folder_);
    if (end)
        end_ = fmt::format("the run ended{}{} with exit code {}{}{}; muster show {} tells more", end->at.empty() ? "" : " at ",
                           end->at, end->code, end->cause.empty() ? "" : ": ", end->cause, shell_quote(folder_));
    else if (gone)
        end_ =
            fmt::format("the run was killed: {} is gone, which led it; muster show {} tells more", *gone, shell_quote(folder_));
    else
        end_ = is_folder(folder_) ? "" : "the run has ended";
    end_ = without_controls(end_);
}

sampled_run find_sampled_run(std::vector<std::string> const& words, environment const& variables) {
    if (words.size() > 1) throw error(errc::usage, "muster top takes one job or one run's folder");
    if (!words.empty() && !is_job_number(words.front()) && !is_sluid(words.front())) return run_in_folder(words.front());
    auto const id = words.empty() ? own_job(variables) : job_numbers(words, "top", variables).front();
    std::string looked_in;
    auto found = find_run_of_node(id, variables);
    if (!found && !id.empty()) found = find_run_of_job(id, variables, looked_in);
    if (found) return sampled_run(*std::move(found));
    if (!id.empty())
        throw_error(
            errc::not_found,
            "job {0}: no run of it in {1} (yet), in another folder here or one below, or with samples on this node; muster "
            "show {0} tells its state{2}",
            without_controls(id), without_controls(looked_in), where_recorded(id, variables));
    throw error(errc::not_found,
                "no run of yours on this node has samples (yet); name a job or the --output-dir of a run: muster top JOB|FOLDER");
}

}  // namespace muster
