#include "launch/jobs/job_record.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/trust/trusted_file.hpp"
#include "launch/jobs/queue/queued_job.hpp"

namespace muster {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr char const* schema = "muster.job/1";

/// The part of a number that can be a file's name: "5[2].pbshead" stays, a slash does not.
bool is_file_name(std::string_view id) {
    return !id.empty() && id.front() != '.' && id.find('/') == std::string_view::npos && id.size() < 200;
}

std::string record_path(std::string const& folder, std::string const& scheduler, std::string const& id) {
    return fmt::format("{}/{}-{}.json", folder, scheduler, id);
}

/// "12" of "12_3", a task of an array; any other number as it is.
std::string slurm_array_of(std::string const& id) {
    return id.substr(0, id.find('_'));
}

/// The record of PBS' job `id` where its server is not said; "" if there is none, or if several servers have such a job.
std::string record_of_any_server(std::string const& folder, std::string const& id) {
    auto const beginning = fmt::format("pbs-{}.", id);
    std::vector<std::string> found;
    std::error_code fault;
    for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end; entry.increment(fault)) {
        auto const name = entry->path().filename().string();
        if (name.starts_with(beginning) && name.ends_with(".json") && name.size() >= beginning.size() + 5)
            found.push_back(entry->path().string());
    }
    return found.size() == 1 ? found.front() : std::string();
}

/// Nothing for one that is not there, is not to be trusted or is damaged.
std::optional<job_record> read_record(std::string const& path) {
    try {
        auto const text = read_trusted_file(path, "record of a job").text;
        return text ? std::optional(parse_job_record(*text, path)) : std::nullopt;
    } catch (error const&) {
        return std::nullopt;
    }
}

std::vector<std::string> words_of(ordered_json const& from, char const* key) {
    return from.contains(key) ? from.at(key).get<std::vector<std::string>>() : std::vector<std::string>();
}

}  // namespace

std::string to_json(job_record const& r) {
    return ordered_json{{"schema", schema},
                        {"id", r.id},
                        {"scheduler", r.scheduler},
                        {"site", r.site},
                        {"name", r.name},
                        {"submitted_at", r.submitted_at},
                        {"submitted_on", r.submitted_on},
                        {"version", r.version},
                        {"working_dir", r.working_dir},
                        {"script", r.script},
                        {"output", r.output},
                        {"run_folder", r.run_folder},
                        {"asked", r.asked},
                        {"command", r.command},
                        {"arguments", r.arguments}}
               .dump(2, ' ', false, ordered_json::error_handler_t::replace) +
           "\n";
}

job_record parse_job_record(std::string_view text, std::string_view origin) {
    try {
        auto const from = ordered_json::parse(text);
        if (!from.is_object() || from.value("schema", "") != schema)
            throw error(errc::config, fmt::format("{}: this is no record of a job ({}); remove it", origin, schema));
        job_record r;
        for (auto const& [key, field] : {std::pair{"id", &r.id},
                                         {"scheduler", &r.scheduler},
                                         {"site", &r.site},
                                         {"name", &r.name},
                                         {"submitted_at", &r.submitted_at},
                                         {"submitted_on", &r.submitted_on},
                                         {"version", &r.version},
                                         {"working_dir", &r.working_dir},
                                         {"script", &r.script},
                                         {"output", &r.output},
                                         {"run_folder", &r.run_folder},
                                         {"asked", &r.asked}})
            *field = from.value(key, "");
        r.command = words_of(from, "command");
        r.arguments = words_of(from, "arguments");
        return r;
    } catch (nlohmann::json::exception const& e) {
        throw error(errc::config, fmt::format("{}: this is no record of a job: {}; remove it", origin, e.what()));
    }
}

std::string job_records_folder(environment const& variables) {
    if (auto const folder = variables.get_or("XDG_STATE_HOME", ""); !folder.empty()) return folder + "/muster/jobs";
    if (auto const home = variables.get_or("HOME", ""); !home.empty()) return home + "/.local/state/muster/jobs";
    return {};
}

std::string write_job_record(job_record const& record, environment const& variables) {
    auto const folder = job_records_folder(variables);
    if (folder.empty()) return "neither XDG_STATE_HOME nor HOME is set";
    if (!is_file_name(record.id)) return fmt::format("'{}' is no name of a file", record.id);
    try {
        output_folder const kept(folder);
        auto const name = fmt::format("{}-{}.json", record.scheduler, record.id);
        // Its arguments may hold secrets (--env).
        auto const file = kept.open_file(name, {}, 0600);
        write_all(file.get(), to_json(record), fmt::format("{}/{}", folder, name));
        return {};
    } catch (error const& e) {
        return e.what();
    }
}

std::optional<job_record> find_job_record(std::string const& id, environment const& variables) {
    auto const folder = job_records_folder(variables);
    if (folder.empty() || !is_file_name(id)) return std::nullopt;
    if (auto found = read_record(record_path(folder, "slurm", id))) return found;
    if (auto found = read_record(record_path(folder, "pbs", id))) return found;
    if (auto found = read_record(record_path(folder, "flux", id))) return found;
    if (auto const of_array = slurm_array_of(id); of_array != id)
        if (auto found = read_record(record_path(folder, "slurm", of_array))) return found;
    for (auto const& number : {pbs_array_of(id), as_pbs_array(id)}) {  // of an array the brackets may be left out
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
