// `muster show` shows what a job asked for, what it got, and where its files are.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/trusted_file.hpp"
#include "base/units.hpp"
#include "launch/commands/commands.hpp"
#include "launch/help/help.hpp"
#include "launch/jobs/job_commands.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/logs/gpu_lines.hpp"
#include "launch/jobs/logs/sweep_results.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"
#include "launch/record/recorded_words.hpp"
#include "launch/samples/run_samples.hpp"

namespace muster {

using nlohmann::ordered_json;

namespace {

/// Reads a JSON file in a run's folder; null if there is no readable one.
ordered_json read_object(std::string const& folder, std::string const& name, std::size_t longest = longest_settings_bytes) {
    try {
        auto const text = read_small_file(folder + "/" + name, "record of a run", longest);
        auto run = text ? parse_json_or_discard<ordered_json>(*text) : ordered_json();
        return run.is_object() ? run : ordered_json();
    } catch (error const&) {
        return {};
    }
}

void print_row(std::string_view name, std::string const& value) {
    if (!value.empty()) fmt::print("{:12} {}\n", name, without_controls(value));
}

std::string words_of_run(ordered_json const& run, char const* key) try {
    return shell_join(words_in(run, key, "run.json"));
} catch (error const&) {
    return {};
}

/// Returns "4 ranks; started in 58 ms, first output after 0.7 s, lived 0.9 s, ended in 9 ms; rank 1 on node1 (member 1) exited
/// with code 3".
std::string describe_generation(ordered_json const& row) {
    constexpr std::pair<char const*, std::string_view> phases[]{{"start", "started in {}"},
                                                                {"first_output", "first output after {}"},
                                                                {"first_metric", "first metric after {}"},
                                                                {"lived", "lived {}"},
                                                                {"ending", "ended in {}"},
                                                                {"waited", "the next {} later"}};
    std::vector<std::string> parts;
    auto const took = row.find("seconds");
    for (auto const& [key, text] : phases)
        if (took != row.end() && took->is_object() && took->contains(key) && (*took)[key].is_number() &&
            (*took)[key].get<double>() >= 0)
            parts.push_back(fmt::format(fmt::runtime(text), format_duration(duration((*took)[key].get<double>()))));
    auto const ranks = row.find("ranks");
    auto const number = ranks != row.end() ? ranks->dump() : "?";
    return fmt::format("{} rank{}: {}{}{}", number, number == "1" ? "" : "s", join(parts, ", "),
                       text_at(row, "/cause").empty() ? "" : "; ", text_at(row, "/cause"));
}

void print_generations(ordered_json const& run) {
    auto const found = run.find("generations");
    if (found == run.end() || !found->is_array()) return;
    for (auto const& row : *found)
        if (row.is_object() && row.contains("number"))
            print_row(fmt::format("generation {}", row["number"].dump()), describe_generation(row));
}

/// Prints "spare 0 on node1, cores 4-5: rank 3 since generation 1 (member 4)".
void print_spares(ordered_json const& run) {
    auto const found = run.find("spares");
    if (found == run.end() || !found->is_array()) return;
    for (auto const& row : *found) {
        auto const number = [&](char const* key) { return row.contains(key) ? row[key].dump() : "null"; };
        auto text = text_at(row, "/place");
        if (auto const end = text_at(row, "/end"); !end.empty())
            text += ": " + end;
        else if (number("generation") != "null")
            text +=
                fmt::format(": rank {} since generation {} (member {})", number("rank"), number("generation"), number("member"));
        print_row("spare", text);
    }
}

void print_run(std::string const& folder, ordered_json const& run, bool is_part = true) {
    if (is_part) fmt::print("\n");
    print_row("run", folder);
    if (run.is_null()) return;
    print_row("command", words_of_run(run, "command"));
    print_row("placed", text_at(run, "/allocation/text"));
    print_row("version", text_at(run, "/version"));
    print_row("started", text_at(run, "/started_at"));
    for (auto const& line : gpu_summary(read_gpu_nodes(folder))) print_row("GPU use", line);
    print_generations(run);
    print_spares(run);
    auto const end = run.contains("exit") ? run["exit"] : ordered_json();
    if (end.is_object()) {
        print_row("ended", text_at(run, "/ended_at"));
        if (auto const code = end.find("code"); code != end.end() && code->is_number_integer())
            print_row("exit code", std::to_string(code->get<std::int64_t>()));
        print_row("cause", text_at(end, "/cause"));
        print_row("no restart", text_at(end, "/no_restart"));
        if (auto const remarks = end.find("remarks"); remarks != end.end() && remarks->is_array())
            for (auto const& remark : *remarks)
                if (remark.is_string()) print_row("remark", without_controls(remark.get<std::string>()));
    }
}

/// Returns why it waits, or why it failed if its state and exit code do not say that.
std::string why_of(queued_job const& job, job_file_finder& finder) {
    if (job.phase == job_phase::waiting) return explain_wait(job);
    auto const why = finder.explain_failure(job);
    return why.empty() ? explain_no_start(job) : why;
}

void print_record(job_record const& record) {
    print_row("cluster", record.cluster);
    print_row("site", record.site);
    print_row("asked for", record.asked);
    print_row("command", shell_join(record.command));
    print_row("submitted", fmt::format("{} on {} by muster {}", record.submitted_at, record.submitted_on, record.version));
    print_row("folder", record.working_dir);
    print_row("script", record.script);
}

ordered_json json_of_run(ordered_json job, std::string const& folder) {
    return {{"job", std::move(job)},
            {"folder", folder},
            {"run", read_object(folder, "run.json")},
            {"samples", read_object(folder, samples_file, longest_samples_bytes)}};
}

/// Shows any run, also one outside of a scheduler, by its folder.
int show_run(std::string const& word, bool as_json) {
    auto const folder = files_of_run(word).first_folder;
    auto const run = read_object(folder, "run.json");
    if (run.is_null())
        throw_error(errc::config, "{}/run.json is no record of a run; give another folder", without_controls(word));
    if (as_json) {
        ordered_json const all{{"schema", "muster.show/1"}, {"id", nullptr},
                               {"scheduler", nullptr},      {"jobs", ordered_json::array()},
                               {"record", nullptr},         {"runs", ordered_json::array({json_of_run(nullptr, folder)})}};
        fmt::print("{}\n", json_text(all, 2));
    } else {
        print_run(folder, run, false);
    }
    return 0;
}

ordered_json json_of(job_record const& record) {
    return parse_json_as<ordered_json>(to_json(record), "a job's record");
}

}  // namespace

int show_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("show", options_first("show", args), real_settings(variables));
    if (print_help_if_asked("show", given)) return 0;
    if (given.command.size() == 1 && is_run_folder(given.command.front()))
        return show_run(given.command.front(), given.flag("json"));
    auto const ids = job_numbers(given.command, "show", variables);
    if (ids.size() != 1) throw error(errc::usage, "muster show takes one job; muster jobs lists all of yours");
    auto const& id = ids.front();
    auto const record = find_job_record(id, variables);
    auto const kind = find_queue(variables);
    auto jobs = list_jobs(kind, ids, variables);
    std::erase_if(jobs, [&](queued_job const& job) { return !is_meant(job, id); });
    bool const is_array = kind == queue_kind::pbs && !jobs.empty() && jobs.front().id.find('[') != std::string::npos;
    auto const number = is_array ? as_pbs_array(id) : id;
    auto parts = list_parts(jobs, id, record);
    if (parts.empty()) parts.push_back({id, id});
    job_file_finder finder(kind, variables);
    std::vector<job_files> files;  // those of each part
    for (auto const& part : parts) files.push_back(finder.find(part, record));
    if (jobs.empty() && !record && std::ranges::all_of(files, [](auto const& of) { return of.run_folders.empty(); }))
        throw_error(errc::not_found, "job {}: neither the scheduler nor muster has a record of it; muster jobs lists yours{}", id,
                    where_recorded(id, variables));
    // This is for the sweep itself, not for one of its tasks.
    bool const is_sweep = record && !record->each.empty() && !index_of_task(id);
    auto const results = is_sweep ? sweep_rows(*record, jobs, finder) : std::vector<sweep_row>();
    if (given.flag("json")) {
        ordered_json all{{"schema", "muster.show/1"}, {"id", id}, {"scheduler", to_string(kind)}};
        all["jobs"] = ordered_json::array();
        for (auto const& job : jobs) all["jobs"].push_back(json_of(job));
        all["record"] = record ? json_of(*record) : ordered_json();
        if (is_sweep) all["results"] = json_of(record->each, results);
        all["runs"] = ordered_json::array();
        for (std::size_t i = 0; i < parts.size(); ++i)
            for (auto const& folder : files[i].run_folders) all["runs"].push_back(json_of_run(parts[i].shown, folder));
        fmt::print("{}\n", json_text(all, 2));
        return 0;
    }
    print_row("job", id);
    if (is_sweep && !given.flag("all")) {
        if (!jobs.empty()) print_row("state", list_states(jobs));
        print_record(*record);
        fmt::print("\n{}", sweep_table(record->each, results));
        print_row("more", fmt::format("muster show {}: one of them; muster show --all {}: each", results.front().task, id));
        return 0;
    }
    for (auto const& job : jobs) {
        print_row("state", fmt::format("{}{}", jobs.size() > 1 ? job.id + " " : "", job.state));
        print_row("why", why_of(job, finder));
        if (job.status) print_row("exit code", std::to_string(*job.status));
        print_row("nodes", job.nodes);
        print_row("time", fmt::format("{} of {}", job.used, job.limit));
        print_row("start", job.start);
    }
    if (record) print_record(*record);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        // This includes an array that has only one task so far.
        if (parts.size() > 1 || jobs.size() > 1) {
            fmt::print("\n");
            print_row("task", parts[i].shown);
        }
        print_row("output", files[i].output);
        print_row("errors", files[i].errors);
        for (auto const& file : files[i].shared) print_row("note", file.why);
        for (auto const& folder : files[i].run_folders) print_run(folder, read_object(folder, "run.json"));
    }
    bool const all = given.flag("all");
    if (!all && !jobs.empty())
        print_row("more", fmt::format("muster show --all {}: the record of {} itself", shell_quote(id), to_string(kind)));
    if (auto const full = all ? describe_job(kind, number, variables) : std::string(); !full.empty())
        fmt::print("\nthe record of {}\n{}\n", to_string(kind), without_controls(trim(full)));
    return 0;
}

}  // namespace muster
