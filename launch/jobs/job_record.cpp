#include "launch/jobs/job_record.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/trust/trusted_file.hpp"

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
        auto const file = kept.open_file(fmt::format("{}-{}.json", record.scheduler, record.id));
        auto const text = to_json(record);
        if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) throw_system("write", folder);
        return {};
    } catch (error const& e) {
        return e.what();
    }
}

std::optional<job_record> find_job_record(std::string const& id, environment const& variables) {
    auto const folder = job_records_folder(variables);
    if (folder.empty() || !is_file_name(id)) return std::nullopt;
    for (auto const* scheduler : {"slurm", "pbs"}) {
        auto const path = record_path(folder, scheduler, id);
        try {
            if (!distrust(path).empty()) continue;
            if (auto const text = read_small_file(path, "record of a job")) return parse_job_record(*text, path);
        } catch (error const&) {  // a damaged record is as none
        }
    }
    return std::nullopt;
}

}  // namespace muster
