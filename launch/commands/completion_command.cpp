#include "launch/commands/commands.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>

#include "base/process/files.hpp"
#include "base/process/run_captured.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/help/completion.hpp"
#include "launch/help/help.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/site/site.hpp"
#include "launch/site/site_placement.hpp"
#include "launch/system/home_folder.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_recorded = 20;            ///< jobs that have ended
constexpr std::chrono::milliseconds patience{1000};  ///< with each of two commands, of somebody who has pressed Tab

/// The first words of the lines that begin with a digit.
std::vector<std::string> job_ids(std::string_view text) {
    std::vector<std::string> ids;
    for (auto const line : split(text, '\n')) {
        auto const words = trim(line);
        if (!words.empty() && is_digit(words.front())) ids.emplace_back(words.substr(0, words.find_first_of(" \t|")));
    }
    return ids;
}

/// The user's jobs that have ended lately, of which muster has a record: "slurm-12.json", "slurm-12@cluster.json".
std::vector<std::string> recorded_jobs(environment const& variables) {
    std::vector<std::pair<fs::file_time_type, std::string>> found;
    for (auto const& path : folder_entries(job_records_folder(variables))) {
        auto const name = path.stem().string();
        auto const number = name.find('-') + 1;
        std::error_code unread;
        auto const written = fs::last_write_time(path, unread);
        if (!unread && path.extension() == ".json" && number > 0)
            found.emplace_back(written, name.substr(number, name.find('@', number) - number));
    }
    std::ranges::sort(found, std::greater());
    std::vector<std::string> ids;
    for (auto const& [written, id] : found)
        if (ids.size() < most_recorded && !id.empty() && is_digit(id.front())) ids.push_back(id);
    return ids;
}

/// The user's jobs as the scheduler has them now.
std::vector<std::string> jobs_of_user(environment const& variables) {
    auto const user = variables.get_or("USER", name_of_user(::geteuid()));
    auto const slurm = run_captured(slurm_words(slurm_ask::job_numbers, {user}), without_slurm_views(variables), patience);
    if (slurm.exit_status == 0) return job_ids(slurm.out);
    return job_ids(run_captured({"qstat", "-u", user}, variables, patience).out);
}

/// Each once.
std::vector<std::string> jobs_that_may_be_meant(environment const& variables) {
    auto ids = jobs_of_user(variables);
    for (auto const& id : recorded_jobs(variables))
        if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
    return ids;
}

/// The queues of a site; without a name those of the site that the user's settings name.
std::vector<std::string> queues_of(std::string name, environment const& variables) {
    if (name.empty()) name = resolve_settings("script", {}, real_settings(variables)).text("site");
    std::vector<std::string> names;
    if (name.empty()) return names;
    for (auto const& queue : load_site(name, site_search_path(variables)).queues) names.push_back(queue.name);
    return names;
}

std::vector<std::string> known_topologies() {
    std::vector<std::string> names;
    for (auto const& folder : topology_search_path())
        for (auto const& path : folder_entries(folder))
            if (path.extension() == ".xml") names.push_back(path.stem().string());
    std::ranges::sort(names);
    return names;
}

void print_lines(std::vector<std::string> const& lines) {
    for (auto const& line : lines) fmt::print("{}\n", line);
}

}  // namespace

int completion_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_options("completion", args, variables);
    if (print_help_if_asked("completion", given)) return 0;
    auto const shell = given.command.empty() ? std::string() : given.command.front();
    if (given.command.size() > (shell == "queues" ? 2 : 1))
        throw_error(errc::usage, "muster completion takes one shell, not '{}' too", given.command.back());
    if (shell == "bash")
        fmt::print("{}", bash_completion());
    else if (shell == "zsh")
        fmt::print("{}", zsh_completion());
    else if (shell == "fish")
        fmt::print("{}", fish_completion());
    else if (shell == "sites")  // what these scripts ask for
        for (auto const& site : list_sites(site_search_path(variables))) fmt::print("{}\n", site.name);
    else if (shell == "queues")
        print_lines(queues_of(given.command.size() == 2 ? given.command[1] : "", variables));
    else if (shell == "topologies")
        print_lines(known_topologies());
    else if (shell == "jobs")
        print_lines(jobs_that_may_be_meant(variables));
    else
        throw error(errc::usage, shell.empty()
                                     ? std::string("muster completion: the shell is missing; give bash, zsh or fish")
                                     : fmt::format("muster completion: no completion for {}; give bash, zsh or fish", shell));
    return 0;
}

}  // namespace muster
