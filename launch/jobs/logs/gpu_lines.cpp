#include "launch/jobs/logs/gpu_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/trusted_file.hpp"
#include "base/units.hpp"
#include "launch/record/gpu_use_record.hpp"

namespace muster {

namespace {

using nlohmann::json;

constexpr double old_s = 30;
constexpr double gib = 1024.0 * 1024 * 1024;

double number_of(json const& row, char const* key) {
    auto const found = row.find(key);
    if (found == row.end() || !found->is_number()) return -1;
    double const value = found->get<double>();
    return std::isfinite(value) && value >= 0 && value < 1e18 ? value : -1;
}

json const& list_of(json const& row, char const* key) {
    static json const none = json::array();
    auto const found = row.is_object() ? row.find(key) : row.end();
    return row.is_object() && found != row.end() && found->is_array() ? *found : none;
}

/// Returns "87 %, 12.3 of 80.0 GiB, 312 W", without the figures that are not known.
std::string describe_now(shown_gpu const& gpu) {
    std::vector<std::string> words;
    if (gpu.busy_percent >= 0) words.push_back(fmt::format("{:.0f} %", gpu.busy_percent));
    if (gpu.memory_bytes >= 0 && gpu.used_bytes >= 0)
        words.push_back(fmt::format("{:.1f} of {:.1f} GiB", gpu.used_bytes / gib, gpu.memory_bytes / gib));
    if (gpu.watts >= 0) words.push_back(fmt::format("{:.0f} W", gpu.watts));
    return words.empty() ? "not known" : join(words, ", ");
}

std::string describe_age(double at, double now) {
    return at > 0 && now - at > old_s ? fmt::format(" ({} ago)", format_duration(duration(std::round(now - at)))) : "";
}

}  // namespace

std::vector<shown_gpu_node> parse_gpu_use(std::string_view text) {
    std::vector<shown_gpu_node> nodes;
    auto const all = parse_json_or_discard<json>(text);
    for (auto const& row : list_of(all, "nodes")) {
        shown_gpu_node node;
        for (auto const& gpu : list_of(row, "gpus"))
            if (gpu.is_object())
                node.gpus.push_back({without_controls(text_at(gpu, "/number")), number_of(gpu, "busy_percent"),
                                     number_of(gpu, "mean_busy_percent"), number_of(gpu, "memory_bytes"),
                                     number_of(gpu, "used_bytes"), number_of(gpu, "most_used_bytes"), number_of(gpu, "watts")});
        if (node.gpus.empty()) continue;
        node.host = without_controls(text_at(row, "/host"));
        node.at = std::max(number_of(row, "at"), 0.0);
        nodes.push_back(std::move(node));
    }
    return nodes;
}

std::vector<shown_gpu_node> read_gpu_use(std::string const& run_folder) {
    try {
        auto const text = read_small_file(fmt::format("{}/{}", run_folder, gpu_use_file), "use of GPUs");
        return text ? parse_gpu_use(*text) : std::vector<shown_gpu_node>();
    } catch (error const&) {
        return {};
    }
}

std::string gpu_overview(std::vector<shown_gpu_node> const& nodes) {
    std::size_t count = 0, known = 0;
    double sum = 0;
    std::pair<shown_gpu_node const*, shown_gpu const*> least{}, fullest{};
    for (auto const& node : nodes)
        for (auto const& gpu : node.gpus) {
            ++count;
            if (gpu.busy_percent >= 0) {
                ++known;
                sum += gpu.busy_percent;
                if (least.second == nullptr || gpu.busy_percent < least.second->busy_percent) least = {&node, &gpu};
            }
            bool const has_memory = gpu.memory_bytes > 0 && gpu.used_bytes >= 0;
            if (has_memory && (fullest.second == nullptr ||
                               gpu.used_bytes / gpu.memory_bytes > fullest.second->used_bytes / fullest.second->memory_bytes))
                fullest = {&node, &gpu};
        }
    auto text = fmt::format("{} of {}", counted(static_cast<std::int64_t>(count), "GPU"),
                            counted(static_cast<std::int64_t>(nodes.size()), "node"));
    if (known > 0)
        text += fmt::format(": mean {:.0f} %, least {:.0f} % ({} GPU {})", sum / static_cast<double>(known),
                            least.second->busy_percent, least.first->host, least.second->number);
    if (fullest.second != nullptr)
        text += fmt::format("{} most memory {:.1f} of {:.1f} GiB ({} GPU {})", known > 0 ? "," : ":",
                            fullest.second->used_bytes / gib, fullest.second->memory_bytes / gib, fullest.first->host,
                            fullest.second->number);
    return text;
}

std::vector<std::string> gpu_lines(std::vector<shown_gpu_node> const& nodes, double now) {
    std::vector<std::string> lines;
    for (auto const& node : nodes) {
        std::vector<std::string> words;
        for (auto const& gpu : node.gpus) words.push_back(fmt::format("GPU {} {}", gpu.number, describe_now(gpu)));
        lines.push_back(fmt::format("{}: {}{}", node.host, join(words, "; "), describe_age(node.at, now)));
    }
    return lines;
}

std::vector<std::string> gpu_summary(std::vector<shown_gpu_node> const& nodes) {
    std::vector<std::string> lines;
    for (auto const& node : nodes)
        for (auto const& gpu : node.gpus) {
            std::vector<std::string> words;
            if (gpu.mean_busy_percent >= 0) words.push_back(fmt::format("mean {:.0f} %", gpu.mean_busy_percent));
            if (gpu.memory_bytes >= 0 && gpu.most_used_bytes >= 0)
                words.push_back(fmt::format("at most {:.1f} GiB", gpu.most_used_bytes / gib));
            words.push_back("last " + describe_now(gpu));
            lines.push_back(fmt::format("{} GPU {}: {}", node.host, gpu.number, join(words, ", ")));
        }
    return lines;
}

}  // namespace muster
