#include "launch/jobs/top/sampled_run.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"
#include "launch/samples/session_samples.hpp"
#include "launch/scheduler/flux.hpp"
#include "launch/system/network.hpp"
#include "launch/system/process_stat.hpp"
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

file_version version_of(std::string const& path) {
    struct stat file {};
    if (::stat(path.c_str(), &file) != 0) return {};
    return {file.st_mtim.tv_sec, file.st_mtim.tv_nsec, file.st_ino, file.st_size};
}

struct versioned_samples {
    std::string folder;
    file_version version;
};

/// Returns the folder with the newest samples, of any generation of the run; the run's own if none has any.
versioned_samples find_newest_samples(std::string const& run_folder) {
    versioned_samples newest{run_folder, {}};
    for (auto const& folder : files_of_run(run_folder).run_folders)
        if (auto const version = version_of(samples_of(folder)); version > newest.version) newest = {folder, version};
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
    file_version newest_version;
    for (auto const& part : parts) {
        auto const files = finder.find(part, record);
        looked_in = files.first_folder;
        for (auto const& folder : files.run_folders)
            if (auto const version = find_newest_samples(folder).version; version >= newest_version) {
                newest = folder;
                newest_version = version;
            }
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
                    without_controls(id), without_controls(looked_in));
    throw error(errc::not_found,
                "no run of yours on this node has samples (yet); name a job or the --output-dir of a run: muster top JOB|FOLDER");
}

}  // namespace

void sampled_run::look() {
    read_newest_samples();
    read_record();
    if (!end_.empty() || leader_ < 1 || leader_ > INT32_MAX || leader_start_ticks_ == 0) return;
    auto const leader = read_process_stat(static_cast<pid_t>(leader_));
    if (leader && leader->lives() && leader->start_ticks == leader_start_ticks_) return;
    read_record();  // it may have ended the run since
    if (end_.empty())
        end_ =
            without_controls(fmt::format("the run was killed: process {} of {} is gone, which led it; muster show {} tells more",
                                         leader_, short_host_name(), shell_quote(folder_)));
}

void sampled_run::read_newest_samples() {
    auto const [folder, version] = find_newest_samples(folder_);
    if (version == file_version{}) return refuse_unreadable(folder, R_OK | X_OK);
    if (version == samples_version_) return;
    auto const file = samples_of(folder);
    refuse_unreadable(file, R_OK);
    auto found = read_samples(folder);
    if (!found && !samples_ && path_exists(file))
        throw_error(errc::config, "{} holds no samples that this muster can read; use the muster of the run",
                    without_controls(file));
    if (!found) return;
    samples_ = std::move(found);
    samples_version_ = version;
}

void sampled_run::read_record() {
    auto const file = folder_ + "/run.json";
    auto const version = version_of(file);
    if (version == file_version{}) end_ = is_folder(folder_) ? "" : "the run has ended";
    if (version == file_version{} || version == record_version_) return;
    record_version_ = version;
    auto const run = parse_json_or_discard<nlohmann::json>(read_text_file(file));
    auto const number_at = [&](char const* pointer) {
        auto const at = nlohmann::json::json_pointer(pointer);
        return run.contains(at) && run[at].is_number_integer() ? std::optional(run[at].get<std::int64_t>()) : std::nullopt;
    };
    leader_ = text_at(run, "/host") == short_host_name() ? number_at("/process/pid").value_or(0) : 0;
    leader_start_ticks_ = static_cast<std::uint64_t>(number_at("/process/start_ticks").value_or(0));
    end_.clear();
    auto const code = number_at("/exit/code");
    if (!code) return;
    auto const at = text_at(run, "/ended_at"), cause = text_at(run, "/exit/cause");
    end_ = without_controls(fmt::format("the run ended{}{} with exit code {}{}{}; muster show {} tells more",
                                        at.empty() ? "" : " at ", at, *code, cause.empty() ? "" : ": ", cause,
                                        shell_quote(folder_)));
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
                    without_controls(looked_in), id, where_recorded(id, variables));
    return sampled_run(*std::move(found));
}

}  // namespace muster
