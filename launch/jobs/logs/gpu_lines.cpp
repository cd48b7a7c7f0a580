#include "launch/jobs/logs/gpu_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace muster {

namespace {

constexpr double old_s = 30;

double gib(std::uint64_t bytes) {
    return static_cast<double>(bytes) / (1024.0 * 1024 * 1024);
}

/// Returns "12.3 of 80.0 GiB".
std::optional<std::string> describe_memory(gpu_sample const& gpu) {
    if (!gpu.memory_bytes || !gpu.used_bytes) return std::nullopt;
    return fmt::format("{:.1f} of {:.1f} GiB", gib(*gpu.used_bytes), gib(*gpu.memory_bytes));
}

/// Returns "87 %, 12.3 of 80.0 GiB, 312 W", without the figures that are not known.
std::string describe_now(gpu_sample const& gpu) {
    std::vector<std::string> words;
    if (gpu.busy_percent) words.push_back(fmt::format("{} %", *gpu.busy_percent));
    if (auto const memory = describe_memory(gpu)) words.push_back(*memory);
    if (gpu.watts) words.push_back(fmt::format("{} W", *gpu.watts));
    return words.empty() ? "not known" : join(words, ", ");
}

std::string describe_age(double at, double now) {
    return at > 0 && now - at > old_s ? fmt::format(" ({} ago)", format_duration(duration(std::round(now - at)))) : "";
}

/// Returns the share of its memory that is in use; 0: not known.
double fullness(gpu_sample const& gpu) {
    auto const all = gpu.memory_bytes.value_or(0);
    return all > 0 ? static_cast<double>(gpu.used_bytes.value_or(0)) / static_cast<double>(all) : 0;
}

}  // namespace

std::vector<node_sample> read_gpu_nodes(std::string const& run_folder) {
    try {
        auto samples = read_samples(run_folder);
        if (!samples) return {};
        std::erase_if(samples->nodes, [](auto const& node) { return node.gpus.empty(); });
        return std::move(samples->nodes);
    } catch (error const&) {
        return {};
    }
}

std::string gpu_overview(std::vector<node_sample> const& nodes) {
    std::size_t count = 0, known = 0;
    double sum = 0;
    std::pair<node_sample const*, gpu_sample const*> least{}, fullest{};
    for (auto const& node : nodes)
        for (auto const& gpu : node.gpus) {
            ++count;
            if (gpu.busy_percent) {
                ++known;
                sum += *gpu.busy_percent;
                if (least.second == nullptr || *gpu.busy_percent < *least.second->busy_percent) least = {&node, &gpu};
            }
            if (describe_memory(gpu) && (fullest.second == nullptr || fullness(gpu) > fullness(*fullest.second)))
                fullest = {&node, &gpu};
        }
    auto text = fmt::format("{} of {}", counted(static_cast<std::int64_t>(count), "GPU"),
                            counted(static_cast<std::int64_t>(nodes.size()), "node"));
    if (known > 0)
        text += fmt::format(": mean {:.0f} %, least {} % ({} GPU {})", sum / static_cast<double>(known),
                            *least.second->busy_percent, least.first->host, least.second->number);
    if (fullest.second != nullptr)
        text += fmt::format("{} most memory {} ({} GPU {})", known > 0 ? "," : ":", *describe_memory(*fullest.second),
                            fullest.first->host, fullest.second->number);
    return text;
}

std::vector<std::string> gpu_lines(std::vector<node_sample> const& nodes, double now) {
    std::vector<std::string> lines;
    for (auto const& node : nodes) {
        std::vector<std::string> words;
        for (auto const& gpu : node.gpus) words.push_back(fmt::format("GPU {} {}", gpu.number, describe_now(gpu)));
        lines.push_back(fmt::format("{}: {}{}", node.host, join(words, "; "), describe_age(node.at_s, now)));
    }
    return lines;
}

std::vector<std::string> gpu_summary(std::vector<node_sample> const& nodes) {
    std::vector<std::string> lines;
    for (auto const& node : nodes)
        for (auto const& gpu : node.gpus) {
            std::vector<std::string> words;
            if (gpu.mean_busy_percent) words.push_back(fmt::format("mean {} %", *gpu.mean_busy_percent));
            if (gpu.most_used_bytes) words.push_back(fmt::format("at most {:.1f} GiB", gib(*gpu.most_used_bytes)));
            words.push_back("last " + describe_now(gpu));
            lines.push_back(fmt::format("{} GPU {}: {}", node.host, gpu.number, join(words, ", ")));
        }
    return lines;
}

}  // namespace muster
