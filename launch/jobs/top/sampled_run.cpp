#include "launch/jobs/top/sampled_run.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"
#include "launch/samples/session_samples.hpp"
#include "launch/scheduler/flux.hpp"
#include "launch/system/session_dir.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

std::string samples_of(std::string const& folder) {
    return fmt::format("{}/{}", folder, samples_file);
}

std::string name_of_user(uid_t user) {
    auto const* const entry = ::getpwuid(user);
    return entry != nullptr ? fmt::format("the user {}", entry->pw_name) : fmt::format("the user with number {}", user);
}

/// Throws errc::config if the file or a folder on its way may not be read.
void refuse_unreadable(std::string const& path, int mode) {
    if (::access(path.c_str(), mode) == 0 || errno != EACCES) return;
    struct stat found {};
    auto of = fs::path(path);
    while (::stat(of.c_str(), &found) != 0 && of != of.parent_path()) of = of.parent_path();
    throw_error(errc::config,
                "cannot read {}: permission denied, and {} belongs to {}; ask that user to run muster top, or to let you read it",
                without_controls(path), without_controls(of.string()), name_of_user(found.st_uid));
}

/// Returns when the folder's samples were written; the file's times are by the clock of its file system.
std::tuple<time_t, long> written_at(std::string const& folder) {
    struct stat file {};
    return ::stat(samples_of(folder).c_str(), &file) == 0 ? std::tuple(file.st_mtim.tv_sec, file.st_mtim.tv_nsec)
                                                          : std::tuple(time_t{0}, 0L);
}

/// Returns the folder with the newest samples, of any generation of the run; the run's own if none has any.
std::string newest_generation(std::string const& run_folder) {
    auto newest = run_folder;
    for (auto const& folder : files_of_run(run_folder).run_folders)
        if (written_at(folder) > written_at(newest)) newest = folder;
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
    std::optional<std::string> newest;
    for (auto const& part : parts) {
        auto const files = finder.find(part, record);
        looked_in = files.first_folder;
        for (auto const& folder : files.run_folders)
            if (!newest || written_at(newest_generation(folder)) >= written_at(newest_generation(*newest))) newest = folder;
    }
    return newest;
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

sampled_run find_own_run(environment const& variables) {
    auto const id = own_job(variables);
    std::string looked_in;
    auto found = find_run_of_node(id, variables);
    if (!found && !id.empty()) found = find_run_of_job(id, variables, looked_in);
    if (found) return sampled_run(*std::move(found));
    if (!id.empty())
        throw_error(errc::not_found,
                    "job {}: no run of it on this node has samples, and there is none in {}; name its folder: muster top FOLDER",
                    id, looked_in);
    throw error(errc::not_found,
                "no run of yours on this node has samples (yet); name a job or the --output-dir of a run: muster top JOB|FOLDER");
}

}  // namespace

void sampled_run::look() {
    auto const newest = newest_generation(folder_);
    auto const file = samples_of(newest);
    struct stat now {};
    if (::stat(file.c_str(), &now) != 0) return refuse_unreadable(newest, R_OK | X_OK);
    auto const state_of = [](struct stat const& s) {
        return std::tuple(s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
    };
    if (file == read_from_ && state_of(now) == state_of(read_as_)) return;
    refuse_unreadable(file, R_OK);
    auto found = read_samples(newest);
    if (!found && !samples_ && path_exists(file))
        throw_error(errc::config, "{} holds no samples that this muster can read; use the muster of the run",
                    without_controls(file));
    if (!found) return;
    samples_ = std::move(found);
    read_from_ = file;
    read_as_ = now;
}

std::string sampled_run::describe_end() const {
    auto const more = fmt::format("; muster show {} tells more", shell_quote(folder_));
    if (!path_exists(folder_ + "/run.json")) return is_folder(folder_) ? "" : "the run has ended";
    auto const run = parse_json_or_discard<nlohmann::json>(read_text_file(folder_ + "/run.json"));
    auto const code = read_run_exit(folder_);
    if (auto const gone = code ? std::nullopt : find_gone_process(folder_))
        return without_controls(fmt::format("the run was killed: {} is gone, which led it{}", *gone, more));
    if (!code) return {};
    auto const at = text_at(run, "/ended_at"), cause = text_at(run, "/exit/cause");
    return without_controls(fmt::format("the run ended{}{} with exit code {}{}{}{}", at.empty() ? "" : " at ", at, *code,
                                        cause.empty() ? "" : ": ", cause, more));
}

sampled_run find_sampled_run(std::vector<std::string> const& words, environment const& variables) {
    if (words.size() > 1) throw error(errc::usage, "muster top takes one job or one run's folder");
    if (words.empty()) return find_own_run(variables);
    auto const& word = words.front();
    if (!is_job_number(word) && !is_sluid(word)) {
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
    auto const id = job_numbers(words, "top", variables).front();
    std::string looked_in;
    auto found = find_run_of_job(id, variables, looked_in);
    if (!found) found = find_run_of_node(id, variables);
    if (!found)
        throw_error(errc::not_found,
                    "job {}: no run of it in {} (yet), in another folder here or one below; muster show {} tells its state{}", id,
                    looked_in, id, where_recorded(id, variables));
    return sampled_run(*std::move(found));
}

}  // namespace muster
