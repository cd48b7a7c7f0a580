#include "launch/jobs/logs/sweep_results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/text_table.hpp"
#include "launch/record/run_record.hpp"

namespace muster {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr std::streamoff most_read = 1 << 20;

std::string read_end(std::string const& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) return {};
    auto const size = static_cast<std::streamoff>(file.tellg());
    file.seekg(std::max<std::streamoff>(0, size - most_read));
    std::string text(static_cast<std::size_t>(std::min(size, most_read)), '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
    return text;
}

std::vector<metric_value> metrics_of_run(std::string const& run_folder) {
    for (auto const& [rank, folder] : rank_folders(run_folder))
        if (auto found = last_metrics(read_end(folder + "/stdout") + "\n" + read_end(folder + "/stderr")); !found.empty())
            return found;
    return {};
}

std::string state_of(queued_job const& job) {
    auto const state = without_controls(job.state);
    if (job.phase != job_phase::ended || !job.status || *job.status == 0) return state;
    return fmt::format("{}, exit code {}", state, *job.status);
}

/// Sets state and exit code from the task's row, the row of the waiting tasks, or the record of its last run.
void tell_end(sweep_row& row, std::size_t index, std::vector<queued_job> const& jobs, job_files const& files) {
    auto const own = std::ranges::find_if(jobs, [&](auto const& job) { return index_of_task(job.id) == index; });
    auto const waiting = std::ranges::find_if(
        jobs, [](auto const& job) { return job.phase == job_phase::waiting && job.id.find("_[") != std::string::npos; });
    row.exit_code = own != jobs.end() ? own->status : last_run_exit(files);
    if (own != jobs.end())
        row.state = state_of(*own);
    else if (waiting != jobs.end())
        row.state = without_controls(waiting->state);
    else if (row.exit_code)
        row.state = fmt::format("ended, exit code {}", *row.exit_code);
    else
        row.state = files.run_folders.empty() ? "no run" : "no exit code";
}

/// Returns the metrics of all rows, in the order in which they first appear.
std::vector<metric_value> all_metrics(std::vector<sweep_row> const& rows) {
    std::vector<metric_value> all;
    for (auto const& row : rows)
        for (auto const& metric : row.metrics)
            if (std::ranges::find(all, metric.name, &metric_value::name) == all.end()) all.push_back(metric);
    return all;
}

}  // namespace

std::vector<metric_value> last_metrics(std::string_view text) {
    std::vector<metric_value> found;
    for (auto const line : split(text, '\n')) {
        auto told = parse_metric_line(line);
        if (!told) continue;
        auto const known = std::ranges::find(found, told->name, &metric_value::name);
        if (known == found.end())
            found.push_back(std::move(*told));
        else
            *known = std::move(*told);
    }
    return found;
}

std::vector<metric_value> read_last_metrics(std::vector<std::string> const& run_folders) {
    for (auto folder = run_folders.rbegin(); folder != run_folders.rend(); ++folder) {
        int last = 0;
        while (is_folder(generation_folder(*folder, last + 1))) ++last;
        for (; last > 0; --last)
            if (auto found = metrics_of_run(generation_folder(*folder, last)); !found.empty()) return found;
        if (auto found = metrics_of_run(*folder); !found.empty()) return found;
    }
    return {};
}

std::optional<std::size_t> index_of_task(std::string_view id) {
    auto const at = id.find_first_of("_[");
    if (at == std::string_view::npos) return std::nullopt;
    auto const end = id[at] == '[' ? id.find(']', at) : id.size();
    if (end == std::string_view::npos) return std::nullopt;
    auto const index = parse_integer(id.substr(at + 1, end - at - 1));
    return index && *index >= 0 ? std::optional(static_cast<std::size_t>(*index)) : std::nullopt;
}

std::optional<job_record> with_task_folder(std::optional<job_record> record, std::string_view id) {
    auto const index = index_of_task(id);
    if (record && index && (record->each.empty() || *index < count_tasks(record->each)))
        record->run_folder = fill_word(record->run_folder, record->each, *index);
    return record;
}

std::vector<sweep_row> sweep_rows(job_record const& record, std::vector<queued_job> const& jobs, job_file_finder& finder) {
    std::map<std::size_t, job_number> begun;
    for (auto const& part : list_parts(jobs, record.id, record))
        if (auto const index = index_of_task(part.shown)) begun.emplace(*index, part);
    bool const pbs = record.scheduler == "pbs";
    std::vector<sweep_row> rows;
    for (std::size_t index = 0; index < count_tasks(record.each); ++index) {
        auto const name =
            pbs ? fmt::format("{}[{}]", record.id.substr(0, record.id.find('[')), index) : fmt::format("{}_{}", record.id, index);
        sweep_row row{.task = name, .values = values_of_task(record.each, index)};
        auto const found = begun.find(index);
        auto const files = found == begun.end() ? job_files{} : finder.find(found->second, record);
        row.metrics = read_last_metrics(files.run_folders);
        if (!files.run_folders.empty()) row.folder = files.run_folders.back();
        tell_end(row, index, jobs, files);
        rows.push_back(std::move(row));
    }
    return rows;
}

std::string sweep_table(std::vector<each_parameter> const& each, std::vector<sweep_row> const& rows) {
    auto const metrics = all_metrics(rows);
    std::vector<std::string> header{"task"};
    for (auto const& one : each) header.push_back(one.name);
    for (auto const& one : metrics) header.push_back(one.unit.empty() ? one.name : fmt::format("{} ({})", one.name, one.unit));
    header.insert(header.end(), {"state", "folder"});
    text_table table(header);
    std::error_code fault;
    auto const here = fs::current_path(fault);
    for (auto const& row : rows) {
        std::vector<std::string> cells{row.task};
        for (auto const& value : row.values) cells.push_back(value.empty() ? "''" : without_controls(value));
        for (auto const& one : metrics) {
            auto const found = std::ranges::find(row.metrics, one.name, &metric_value::name);
            cells.push_back(found == row.metrics.end() ? "-" : found->value);
        }
        auto const near = fs::path(row.folder).lexically_relative(here).string();
        auto const folder = near.empty() || near.starts_with("..") ? row.folder : near;
        cells.insert(cells.end(), {row.state, folder.empty() ? "-" : without_controls(folder)});
        table.add(cells);
    }
    return table.text();
}

ordered_json json_of(std::vector<each_parameter> const& each, std::vector<sweep_row> const& rows) {
    auto all = ordered_json::array();
    for (auto const& row : rows) {
        ordered_json parameters = ordered_json::object(), metrics = ordered_json::object();
        for (std::size_t i = 0; i < row.values.size(); ++i) parameters[each[i].name] = row.values[i];
        for (auto const& one : row.metrics)
            metrics[one.name] = {{"value", parse_real(one.value).value_or(0)}, {"unit", one.unit}};
        all.push_back({{"task", row.task},
                       {"parameters", parameters},
                       {"metrics", metrics},
                       {"state", row.state},
                       {"exit_code", row.exit_code ? ordered_json(*row.exit_code) : ordered_json()},
                       {"folder", row.folder}});
    }
    return all;
}

}  // namespace muster
