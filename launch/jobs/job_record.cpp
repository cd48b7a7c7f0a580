#include "launch/jobs/job_record.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/trust/trusted_file.hpp"
#include "launch/commands/commands.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"
#include "launch/jobs/queue/queued_job.hpp"
#include "launch/record/recorded_words.hpp"

namespace muster {

using nlohmann::ordered_json;

namespace {

constexpr char const* schema = "muster.job/1";

/// These fields may hold any bytes.
constexpr std::pair<char const*, std::string job_record::*> path_fields[]{{"working_dir", &job_record::working_dir},
                                                                          {"script", &job_record::script},
                                                                          {"output", &job_record::output},
                                                                          {"run_folder", &job_record::run_folder}};

std::string record_path(std::string const& folder, std::string const& scheduler, std::string const& id) {
    return fmt::format("{}/{}-{}.json", folder, scheduler, id);
}

/// Returns "12" of "12_3", a task of an array; any other number as it is.
std::string slurm_array_of(std::string const& id) {
    return id.substr(0, id.find('_'));
}

/// Returns paths, in no order.
std::vector<std::string> records_beginning_with(std::string const& folder, std::string const& beginning) {
    std::vector<std::string> found;
    for (auto const& path : folder_entries(folder)) {
        auto const name = path.filename().string();
        if (name.starts_with(beginning) && name.ends_with(".json") && name.size() >= beginning.size() + 5)
            found.push_back(path.string());
    }
    return found;
}

/// Returns the record of PBS' job `id` whose server is not given; "" unless exactly one server has such a job.
std::string record_of_any_server(std::string const& folder, std::string const& id) {
    auto const found = records_beginning_with(folder, fmt::format("pbs-{}.", id));
    return found.size() == 1 ? found.front() : std::string();
}

/// Returns nothing for a record that is missing, untrusted or damaged.
std::optional<job_record> read_record(std::string const& path) {
    try {
        auto const text = read_trusted_file(path, "record of a job").text;
        return text ? std::optional(parse_job_record(*text, path)) : std::nullopt;
    } catch (error const&) {
        return std::nullopt;
    }
}

}  // namespace

std::string to_json(job_record const& r) {
    ordered_json all{{"schema", schema},    {"id", r.id},     {"scheduler", r.scheduler},       {"cluster", r.cluster},
                     {"site", r.site},      {"name", r.name}, {"submitted_at", r.submitted_at}, {"submitted_on", r.submitted_on},
                     {"version", r.version}};
    for (auto const& [key, field] : path_fields) put_text(all, key, r.*field);
    all["asked"] = r.asked;
    for (auto const& one : r.each) {
        auto& row = all["each"].emplace_back(ordered_json{{"name", one.name}});
        put_words(row, "values", one.values);
    }
    put_words(all, "command", r.command);
    put_words(all, "arguments", r.arguments);
    return json_text(all, 2) + "\n";
}

job_record parse_job_record(std::string_view text, std::string_view origin) {
    try {
        auto const from = parse_json_as<ordered_json>(text, origin, errc::config);
        if (!from.is_object() || text_in(from, "schema", origin) != schema)
            throw_error(errc::config, "{}: this is no record of a job ({}); remove it", origin, schema);
        job_record r;
        for (auto const& [key, field] : {std::pair{"id", &r.id},
                                         {"scheduler", &r.scheduler},
                                         {"cluster", &r.cluster},
                                         {"site", &r.site},
                                         {"name", &r.name},
                                         {"submitted_at", &r.submitted_at},
                                         {"submitted_on", &r.submitted_on},
                                         {"version", &r.version},
                                         {"asked", &r.asked}})
            *field = text_in(from, key, origin);
        for (auto const& [key, field] : path_fields) r.*field = text_in(from, key, origin);
        for (auto const& row : from.value("each", ordered_json::array()))
            r.each.push_back({text_in(row, "name", origin), words_in(row, "values", origin)});
        r.command = words_in(from, "command", origin);
        r.arguments = words_in(from, "arguments", origin);
        return r;
    } catch (nlohmann::json::exception const& e) {
        throw_error(errc::config, "{}: this is no record of a job: {}; remove it", origin, json_fault(e));
    }
}

std::string write_job_record(job_record const& record, environment const& variables) {
    auto const folder = job_records_folder(variables);
    if (folder.empty()) return "neither XDG_STATE_HOME nor HOME is set";
    if (!is_file_name(record.id)) return fmt::format("'{}' is no name of a file", record.id);
    try {
        output_folder const kept(folder);
        auto name = fmt::format("{}-{}.json", record.scheduler, record.id);
        if (!record.cluster.empty() && is_file_name(record.cluster))
            if (auto const other = read_record(fmt::format("{}/{}", folder, name)); other && other->cluster != record.cluster)
                name = fmt::format("{}-{}@{}.json", record.scheduler, record.id, record.cluster);
        // The arguments may hold secrets (--env).
        auto const file = kept.open_file(name, {}, 0600);
        write_all(file.get(), to_json(record), fmt::format("{}/{}", folder, name));
        return {};
    } catch (error const& e) {
        return e.what();
    }
}

namespace {

/// Returns the record of the cluster `cluster`, or one that names no cluster.
std::optional<job_record> read_slurm_record(std::string const& folder, std::string const& id,
                                            std::function<std::string()> const& cluster) {
    auto first = read_record(record_path(folder, "slurm", id));
    if (!first) return std::nullopt;
    auto const beginning = fmt::format("slurm-{}@", id);
    auto const other = records_beginning_with(folder, beginning);
    if ((first->cluster.empty() && other.empty()) || is_federated(id)) return first;
    auto const here = cluster();
    if (here.empty() && !other.empty())
        throw_error(errc::usage,
                    "job {0}: several clusters have a job of this number ({1} is the record of one, {2} that of another), and no "
                    "Slurm answers here; do this on a login node of the one you mean",
                    id, record_path(folder, "slurm", id), other.front());
    if (here.empty() || first->cluster == here) return first;
    if (auto found = read_record(fmt::format("{}/{}{}.json", folder, beginning, here))) return found;
    return first->cluster.empty() ? first : std::nullopt;
}

}  // namespace

std::optional<job_record> find_job_record(std::string const& id, environment const& variables) {
    return find_job_record(id, variables, [&] { return find_cluster(variables); });
}

std::vector<job_record> recent_job_records(environment const& variables, std::time_t since) {
    std::vector<std::pair<std::time_t, job_record>> found;
    for (auto const& path : records_beginning_with(job_records_folder(variables), "")) {
        struct stat file {};
        if (::stat(path.c_str(), &file) != 0 || file.st_mtime < since)
            continue;  // written at the submission of the job, and never again
        if (auto record = read_record(path)) found.emplace_back(file.st_mtime, std::move(*record));
    }
    std::ranges::stable_sort(found, [](auto const& a, auto const& b) {
        return std::tuple(a.first, a.second.id.size(), a.second.id) > std::tuple(b.first, b.second.id.size(), b.second.id);
    });
    std::vector<job_record> records;
    for (auto& [at, record] : found) records.push_back(std::move(record));
    return records;
}

std::string where_recorded(std::string const& id, environment const& variables) {
    auto const folder = job_records_folder(variables);
    if (folder.empty() || !is_file_name(id)) return {};
    auto const other = read_record(record_path(folder, "slurm", slurm_array_of(id)));
    if (!other || other->cluster.empty() || find_job_record(id, variables)) return {};
    return fmt::format("; muster's record of a job {} is of the cluster {}: ask there", id, without_controls(other->cluster));
}

std::optional<job_record> find_job_record(std::string const& id, environment const& variables,
                                          std::function<std::string()> const& cluster) {
    auto const folder = job_records_folder(variables);
    if (folder.empty() || !is_file_name(id)) return std::nullopt;
    if (auto found = read_slurm_record(folder, id, cluster)) return found;
    if (auto found = read_record(record_path(folder, "pbs", id))) return found;
    if (auto found = read_record(record_path(folder, "flux", id))) return found;
    if (auto const of_array = slurm_array_of(id); of_array != id)
        if (auto found = read_slurm_record(folder, of_array, cluster)) return found;
    for (auto const& number : {pbs_array_of(id), as_pbs_array(id)}) {  // an array's brackets may be left out
        auto const path =
            number.find('.') == std::string::npos ? record_of_any_server(folder, number) : record_path(folder, "pbs", number);
        if (auto found = path.empty() ? std::nullopt : read_record(path)) return found;
    }
    return std::nullopt;
}

std::string full_job_number(std::string const& asked, std::optional<job_record> const& record) {
    if (!record || record->scheduler != "pbs") return asked;
    auto const id = record->id.find("[]") == std::string::npos ? asked : as_pbs_array(asked);
    if (id.find('.') != std::string::npos) return id;
    auto const server = record->id.find('.');
    return server == std::string::npos ? id : id + record->id.substr(server);
}

}  // namespace muster
