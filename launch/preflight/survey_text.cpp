#include "launch/preflight/survey_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "base/text_table.hpp"
#include "base/trust/foreign_json.hpp"
#include "launch/engine/engine_job.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/preflight/check_nodes.hpp"
#include "launch/scheduler/read_allocation.hpp"

namespace muster {

namespace {

std::string_view state_of(node_survey const& survey, int node) {
    if (is_bad(survey.findings, node)) return "BAD";
    bool const noted = std::ranges::any_of(survey.findings, [&](auto const& f) { return f.node == node; });
    return noted ? "note" : "ok";
}

std::string free_of(node_report const& report, std::string_view path) {
    for (auto const& folder : report.folders)
        if (folder.path == path) return folder.fault.empty() ? format_bytes(folder.free_bytes) : folder.fault;
    return "?";
}

/// Returns "4 NVIDIA A100", "3 A, 1 B"; "4" for more than two names or unknown ones.
std::string describe_gpus(node_report const& report) {
    std::vector<std::pair<std::string, int>> kinds;
    for (auto const& gpu : report.gpus) {
        auto kind = std::ranges::find_if(kinds, [&](auto const& k) { return k.first == gpu.name; });
        if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {gpu.name, 0});
        ++kind->second;
    }
    if (kinds.size() > 2) return std::to_string(report.gpus.size());
    std::vector<std::string> words;
    for (auto const& [name, count] : kinds) words.push_back(fmt::format("{}{}{}", count, name.empty() ? "" : " ", name));
    return words.empty() ? "none" : join(words, ", ");
}

/// Returns "2 faults", which follow the table.
std::string count_of(node_survey const& survey, int node) {
    auto const count = std::ranges::count_if(survey.findings, [&](auto const& f) { return f.node == node; });
    return count == 0 ? "" : counted(count, "fault");
}

/// Returns how far a node's clock is ahead of this one, if that exceeds the error of measurement.
std::string describe_clock(probed_node const& node) {
    if (std::abs(node.clock_ahead_s) <= std::max(node.clock_error_s, 0.001)) return "same";
    return fmt::format("{:+.3f} s", node.clock_ahead_s);
}

std::string table_of(node_survey const& survey, std::size_t most_width) {
    text_table table({"node", "", "address", "interface", "cores", "GPUs", "/dev/shm", "/tmp", "clock", "wrong"});
    for (int n = 0; n < static_cast<int>(survey.nodes.size()); ++n) {
        auto const& node = survey.nodes[static_cast<std::size_t>(n)];
        std::vector<std::string> row{node.name, std::string(state_of(survey, n))};
        if (auto const& r = node.report)
            row.insert(row.end(), {r->address, r->interface, std::to_string(r->cores), describe_gpus(*r), free_of(*r, "/dev/shm"),
                                   free_of(*r, "/tmp"), describe_clock(node)});
        else
            row.insert(row.end(), 7, "?");
        row.push_back(count_of(survey, n));
        table.add(std::move(row));
    }
    return table.text(most_width);
}

using json = nlohmann::ordered_json;

json json_of(gpu_state const& gpu) {
    json j{{"index", gpu.index}, {"uuid", gpu.uuid}, {"pci", gpu.pci}, {"name", gpu.name}};
    if (gpu.memory_bytes > 0) j.update({{"memory_bytes", gpu.memory_bytes}, {"used_bytes", gpu.used_bytes}});
    if (gpu.ecc_errors >= 0) j["ecc_errors"] = gpu.ecc_errors;
    if (gpu.clock_mhz > 0) j["clock_mhz"] = gpu.clock_mhz;
    if (gpu.most_clock_mhz > 0) j["most_clock_mhz"] = gpu.most_clock_mhz;
    j.update({{"needs_reset", gpu.needs_reset}, {"slowed", gpu.slowed}, {"processes", gpu.processes}});
    return j;
}

json json_of(node_survey const& survey, int number) {
    auto const& node = survey.nodes[static_cast<std::size_t>(number)];
    json j{{"node", node.name}, {"state", state_of(survey, number)}};
    if (auto const& r = node.report) {
        j.update({{"host", r->host}, {"version", r->version}, {"address", r->address}, {"interface", r->interface}});
        j.update({{"cores", r->cores}, {"cpus", r->cpu_list}, {"gpu_note", r->gpu_note}, {"program", r->program}});
        j["gpus"] = json::array();
        for (auto const& gpu : r->gpus) j["gpus"].push_back(json_of(gpu));
        j["folders"] = json::array();
        for (auto const& f : r->folders)
            j["folders"].push_back({{"path", f.path}, {"free_bytes", f.free_bytes}, {"fault", f.fault}});
        if (!node.towards.empty() && node.connect_fault.empty()) j["connects_to"] = node.towards;
        j.update({{"clock_ahead_s", node.clock_ahead_s}, {"clock_error_s", node.clock_error_s}});
    }
    j["findings"] = json::array();
    for (auto const& f : survey.findings)
        if (f.node == number)
            j["findings"].push_back(
                {{"severity", f.how == severity::error ? "error" : "note"}, {"what", f.what}, {"do", f.advice}});
    return j;
}

/// Returns how many nodes are unfit for ranks.
int count_bad(node_survey const& survey) {
    int bad = 0;
    for (int n = 0; n < static_cast<int>(survey.nodes.size()); ++n) bad += is_bad(survey.findings, n) ? 1 : 0;
    return bad;
}

/// Returns a table of the nodes, followed by the findings with what to do.
std::string nodes_text(node_survey const& survey, std::size_t most_width) {
    auto const all = static_cast<int>(survey.nodes.size()), bad = count_bad(survey);
    auto const fit = all == 1 ? fmt::format("the node is {}fit for ranks", bad == 0 ? "" : "not ")
                              : fmt::format("{} of {} nodes {} fit for ranks", all - bad, all, all - bad == 1 ? "is" : "are");
    auto text = fmt::format("{}{}\n", table_of(survey, most_width), fit);
    for (auto const which : {severity::error, severity::note})
        for (auto const& line : describe_findings(survey.findings, survey.nodes, which)) text += line + "\n";
    return text;
}

json nodes_json(node_survey const& survey) {
    json nodes = json::array();
    for (int n = 0; n < static_cast<int>(survey.nodes.size()); ++n) nodes.push_back(json_of(survey, n));
    return nodes;
}

}  // namespace

examined_nodes examine_nodes(run_options const& options, environment const& variables, std::string const& scratch_dir,
                             std::size_t most_width) {
    auto const sources = real_sources(variables, [&] { return node_of(discover_here(variables)); });
    run_plan run{options, variables, sources, scratch_dir};
    run.given = read_allocation(sources, options.from);
    auto const survey = survey_nodes(run, all_nodes(run.given));
    return {nodes_text(survey, most_width), json_text(nodes_json(survey)), count_bad(survey)};
}

}  // namespace muster
