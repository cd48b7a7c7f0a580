#include "launch/jobs/recorded_run.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/trusted_file.hpp"
#include "launch/jobs/queue/queued_job.hpp"
#include "launch/record/recorded_words.hpp"

namespace muster {

using nlohmann::json;

namespace {

/// The record says what to run, so nobody else may be able to write it.
std::optional<std::string> read_trusted_record(std::string const& path) {
    auto found = read_trusted_file(path, "record of a run");
    if (!found.distrust.empty())
        throw_error(errc::config, "{}: not read: {}; copy the folder to a place of your own", path, found.distrust);
    return std::move(found.text);
}

}  // namespace

environment read_script_variables(std::string const& folder) {
    constexpr std::array names{"MUSTER_ARRAY_INDEX", "MUSTER_CHAIN_LENGTH", "MUSTER_CHAIN_LINK", "MUSTER_SYNC_DIR",
                               "MUSTER_ARTIFACTS_DIR"};
    auto const path = folder + "/environment";
    auto const text = read_trusted_record(path).value_or("");
    environment found;
    for (auto const line : split(text, '\n')) {
        auto const equals = line.find('=');
        auto const name = std::string(line.substr(0, equals));
        if (equals == std::string_view::npos || std::ranges::find(names, name) == names.end()) continue;
        auto const value = shell_split(line.substr(equals + 1), path);
        found.set(name, value.empty() ? std::string() : value.front());
    }
    return found;
}

recorded_run read_recorded_run(std::string const& folder) {
    auto const path = folder + "/run.json";
    auto const text = read_trusted_record(path);
    if (!text) throw_error(errc::usage, "no {}; give the folder of a run, as muster show names it", path);
    try {
        auto const run = parse_json_as<json>(*text, path, errc::config);
        if (!run.is_object() || text_in(run, "schema", path) != "muster.run/1")
            throw_error(errc::config, "{}: this is no record of a run (muster.run/1); give the folder of a run", path);
        if (!run.contains("command") && !run.contains("command_hex"))
            throw_error(errc::config, "{}: the run's command is missing; give the folder of a run", path);
        auto const allocation = run.value("allocation", json::object());
        if (!allocation.is_object() && !allocation.is_null())
            throw_error(errc::config, "{}: the key 'allocation' holds no object; give a record that muster has written", path);
        auto cluster = text_in(allocation, "cluster", path);
        if (!is_file_name(cluster)) cluster.clear();
        auto const working_dir = text_in(run, "working_dir", path);
        auto const launched_in = text_in(run, "launched_in", path);
        return {.version = text_in(run, "version", path),
                .launched_in = launched_in.empty() ? working_dir : launched_in,
                .working_dir = working_dir,
                .job_id = text_in(allocation, "job_id", path),
                .cluster = cluster,
                .command = words_in(run, "command", path),
                .options = words_in(run, "options", path),
                .left_out = words_in(run, "variables_left_out", path)};
    } catch (json::exception const& e) {
        throw_error(errc::config, "{}: this is no record of a run: {}; give the folder of a run", path, json_fault(e));
    }
}

std::vector<std::string> with_own_folder(std::vector<std::string> options, std::string const& folder) {
    auto const at = std::ranges::find(options, "--output-dir");
    if (at == options.end() || at + 1 == options.end() || (at + 1)->find("%j") != std::string::npos) return options;
    auto own = std::filesystem::path(folder).lexically_normal().string();
    while (own.size() > 1 && own.back() == '/') own.pop_back();
    *(at + 1) = own + ".again-%j";
    return options;
}

std::vector<std::string> missing_secrets(std::vector<std::string> const& options, environment const& now) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i + 1 < options.size(); ++i)
        if (options[i] == "--env" && options[i + 1].find('=') == std::string::npos && !now.has(options[i + 1]))
            names.push_back(options[i + 1]);
    return names;
}

}  // namespace muster
