#include "launch/record/run_record.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/types.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>

#include "base/command/print_note.hpp"
#include "base/process/files.hpp"
#include "base/process/this_process.hpp"
#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/version.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "launch/record/recorded_words.hpp"
#include "launch/samples/run_samples.hpp"
#include "launch/settings/settings_to_options.hpp"
#include "launch/system/network.hpp"
#include "launch/system/process_stat.hpp"

namespace muster {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr int most_runs = 10'000;  ///< of one job
constexpr std::string_view write_hint = "free space, or give another --output-dir";

std::string time_text(std::time_t when) {
    return fmt::format("{:%Y-%m-%dT%H:%M:%S%z}", fmt::localtime(when));
}

std::vector<std::string> entries_without_secrets(std::string const& name, std::vector<std::string> entries) {
    if (name == "env")
        for (auto& entry : entries) entry = without_secret(entry);
    return entries;
}

ordered_json settings_json(run_options const& options) {
    auto rows = ordered_json::array();
    for (auto const& [name, value] : options.asked) {
        ordered_json row{{"name", name}};
        put_words(row, "value", entries_without_secrets(name, value.entries));
        row["from"] = to_string(value.from);
        row["where"] = value.where;
        rows.push_back(std::move(row));
    }
    return rows;
}

/// Writes `--env NAME` as NAME=VALUE, since the value may have changed by then; leaves secrets out.
std::vector<std::string> with_values(std::vector<std::string> entries, environment const& variables) {
    for (auto& entry : entries)
        if (auto const value = entry.find('=') == std::string::npos ? variables.get(entry) : std::nullopt)
            entry = without_secret(fmt::format("{}={}", entry, *value));
    return entries;
}

/// Returns all settings as options, so that the run can be repeated whatever files and variables say by then.
std::vector<std::string> option_line(run_options const& options, environment const& variables) {
    std::vector<std::string> words;
    for (auto const& [name, value] : options.asked) {
        auto const* row = find_setting(name, "run");
        if (row == nullptr) continue;
        auto entries = entries_without_secrets(name, value.entries);
        if (name == "env") entries = with_values(std::move(entries), variables);
        auto const own = words_of_setting(*row, entries);
        words.insert(words.end(), own.begin(), own.end());
    }
    return words;
}

/// Returns ", cores 0-7, GPU 1".
std::string text_of(rank_share const& share) {
    auto text = share.cpus.empty() ? std::string() : fmt::format(", cores {}", share.cpus);
    if (share.gpu >= 0) text += fmt::format(", GPU {}", share.gpu);
    return text;
}

std::string text_of(binding const& own) {
    return text_of(rank_share{own.cores.empty() ? "" : own.cores.to_list(), own.device ? own.device->index : -1});
}

ordered_json json_of(spare_record const& one) {
    ordered_json row{{"spare", one.number}, {"place", one.place}};
    for (auto const& [name, number] : {std::pair("generation", one.generation), {"rank", one.rank}, {"member", one.member}})
        row[name] = number < 0 ? ordered_json() : ordered_json(number);
    row["end"] = one.end;
    return row;
}

ordered_json allocation_json(allocation const& given) {
    auto nodes = ordered_json::array();
    for (auto const& n : given.nodes) {
        ordered_json row{{"name", n.name}, {"slots", n.slots}};
        row["gpus"] = n.gpus ? ordered_json(*n.gpus) : ordered_json();
        row["cpus"] = n.cpus ? ordered_json(*n.cpus) : ordered_json();
        nodes.push_back(std::move(row));
    }
    ordered_json all{{"text", describe(given)}, {"scheduler", to_string(given.scheduler)}, {"job_id", given.job_id}};
    if (!given.cluster.empty()) all["cluster"] = given.cluster;
    all["nodes"] = std::move(nodes);
    return all;
}

}  // namespace

std::string describe_spare(int number, std::string const& host, binding const& place) {
    return name_of_spare(number, host) + text_of(place);
}

std::string with_job_number(std::string pattern, std::string_view id) {
    for (std::size_t at = 0; (at = pattern.find("%j", at)) != std::string::npos; at += id.size()) pattern.replace(at, 2, id);
    return pattern;
}

std::string claim_run_folder(std::string const& pattern, std::string const& job_number) {
    if (pattern.find("%j") == std::string::npos) return pattern;
    auto path = with_job_number(pattern, job_number);
    // A number appended to "logs/7/" would be inside of the first run's folder.
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    std::error_code fault;
    auto const parent = fs::path(path).parent_path();
    if (!parent.empty()) fs::create_directories(parent, fault);
    for (int n = 1; n <= most_runs; ++n) {
        auto const folder = n == 1 ? path : fmt::format("{}.{}", path, n);
        if (fs::create_directory(folder, fault)) return folder;
        if (fault) throw_error(errc::io, "--output-dir: cannot make {}: {}; give another", folder, fault.message());
    }
    throw_error(errc::io, "--output-dir {}: {} runs have left folders there; remove some", path, most_runs);
}

std::string generation_folder(std::string const& folder, int generation) {
    return fmt::format("{}/generation.{}", folder, generation);
}

void clear_former_generations(std::string const& folder) {
    std::error_code fault;
    for (int n = 1; fs::symlink_status(generation_folder(folder, n), fault).type() == fs::file_type::directory; ++n) {
        auto const former = generation_folder(folder, n);
        clear_former_ranks(former, 0);
        fs::remove(former, fault);
    }
}

run_record::run_record(std::string folder, run_context const& run, environment variables, std::string working_dir)
    : folder_(std::move(folder)),
      run_(run),
      variables_(std::move(variables)),
      working_dir_(std::move(working_dir)),
      generations_(run.life.ends) {
    if (folder_.empty()) return;
    folder_ = absolute_path(folder_);
    secrets_ = leave_out_secrets(variables_);
    std::error_code fault;
    launched_in_ = fs::current_path(fault).string();
    if (working_dir_.empty()) working_dir_ = launched_in_;
}

std::string run_record::text() const {
    auto const& options = run_.options;
    auto const site = options.asked.find("site");
    ordered_json all{
        {"schema", "muster.run/1"}, {"version", version()}, {"muster", self_program().string()}, {"host", short_host_name()}};
    auto const guardian = ::getppid();  // it outlives each launcher of this run
    all["process"] = {{"pid", guardian}, {"start_ticks", read_process_stat(guardian).value_or(process_status{}).start_ticks}};
    put_words(all, "command", options.command);
    put_words(all, "options", option_line(options, variables_));
    all["settings"] = settings_json(options);
    all["site"] = site == options.asked.end() || site->second.entries.empty() ? "" : site->second.entries.front();
    put_text(all, "launched_in", launched_in_);
    put_text(all, "working_dir", working_dir_);
    all["allocation"] = allocation_json(run_.given);
    all["ranks"] = run_.map.world_size();
    all["places"] = places_;
    put_words(all, "variables_left_out", secrets_);
    all["output"] = to_json(output_);
    all["started_at"] = time_text(started_);
    if (options.is_elastic()) {
        auto rows = ordered_json::array();
        for (auto const& one : generations_) rows.push_back(to_json(one));
        all["generation"] = run_.generation();
        all["generations"] = std::move(rows);
        if (!spares_.empty()) {
            auto& spares = all["spares"] = ordered_json::array();
            for (auto const& one : spares_) spares.push_back(json_of(one));
        }
    }
    if (!exit_.empty()) {
        all["ended_at"] = time_text(std::time(nullptr));
        all["exit"] = parse_json_as<ordered_json>(exit_, "the run's end");
    }
    return json_text(all, 2) + "\n";
}

void run_record::begin(local_placement const* here) {
    if (folder_.empty()) return;
    started_ = std::time(nullptr) - static_cast<std::time_t>(run_.life.age().count());  // when the first generation started
    auto const places = run_.map.places();
    for (std::size_t r = 0; r < places.size(); ++r) {
        auto line = fmt::format("rank {} on {}", r, run_.given.nodes.at(static_cast<std::size_t>(places[r].node)).name);
        if (here != nullptr && r < here->bindings.size()) line += text_of(here->bindings[r]);
        if (r < run_.life.now.members.size()) line += fmt::format(", member {}", run_.life.now.members[r].number);
        places_.push_back(std::move(line));
    }
    output_ = run_.life.is_first()
                  ? begin_output_spans()
                  : output_spans_in(parse_json_or_discard<nlohmann::json>(read_text_file(folder_ + "/run.json")));
    if (here != nullptr)
        for (auto const& own : here->spares) {
            auto const number = static_cast<int>(spares_.size());
            spares_.push_back({.number = number, .place = describe_spare(number, here->machine.host, own)});
        }
    output_folder const folder(folder_, "check --output-dir");
    folder.remove_file(samples_file);                                                // a former run's
    folder.replace_file("environment", variables_.shell_lines(), write_hint, 0600);  // may contain secrets, as command lines do
    folder.replace_file("run.json", text(), write_hint, 0600);
}

void run_record::end_generations(std::vector<generation_end> ends, std::string why_not) {
    generations_ = std::move(ends);
    why_not_ = std::move(why_not);
}

void run_record::end(int code, run_outcome const& outcome) {
    if (folder_.empty()) return;
    ordered_json exit{{"code", code}, {"cause", outcome.cause}};
    exit["rank"] = outcome.rank >= 0 ? ordered_json(outcome.rank) : ordered_json();
    exit["host"] = outcome.host;
    if (!why_not_.empty()) exit["no_restart"] = why_not_;
    for (auto const& remark : outcome.remarks) exit["remarks"].push_back(remark.text);
    exit_ = json_text(exit);
    if (!outcome.spares.empty()) spares_ = outcome.spares;
    try {
        for (std::size_t r = 0; r < places_.size() && r < outcome.shares.size(); ++r) places_[r] += text_of(outcome.shares[r]);
        if (started_ == 0) begin();  // the run failed before its ranks got their cores
        end_output_spans(output_);
        output_folder(folder_, "check --output-dir").replace_file("run.json", text(), write_hint, 0600);
    } catch (std::exception const& e) {
        print_note("how the run ended is not in {}/run.json: {}", folder_, e.what());
    }
}

}  // namespace muster
