#include "launch/record/gpu_use_record.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/process/start_thread.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/open_output_file.hpp"

namespace muster {

using nlohmann::ordered_json;

namespace {

constexpr duration others_come{0.5};  ///< after the first node's report
constexpr std::chrono::milliseconds patience_at_end{500};

ordered_json json_of(gpu_history const& gpu) {
    auto const known = [](bool is_known, auto value) { return is_known ? ordered_json(value) : ordered_json(); };
    auto const& last = gpu.last;
    return {{"number", last.number},
            {"name", last.name},
            {"busy_percent", known(last.busy_percent >= 0, last.busy_percent)},
            {"mean_busy_percent", known(gpu.looks > 0, gpu.looks > 0 ? (gpu.busy_sum + gpu.looks / 2) / gpu.looks : 0)},
            {"memory_bytes", known(last.memory_bytes > 0, last.memory_bytes)},
            {"used_bytes", known(last.memory_bytes > 0, last.used_bytes)},
            {"most_used_bytes", known(last.memory_bytes > 0, gpu.most_used_bytes)},
            {"watts", known(last.watts >= 0, last.watts)}};
}

/// Writes another file first and renames it: a reader must not find half of it.
void replace_file(std::string const& path, std::string const& text) {
    try {
        output_folder const folder(path);
        auto const name = fmt::format("{}.new", gpu_use_file);
        write_all(folder.open_file(name, {}, 0600).get(), text, name, "free space");
        folder.rename_file(name, gpu_use_file);
    } catch (std::exception const&) {
        return;  // the same fault affects the ranks' output and run.json, for which it is reported
    }
}

}  // namespace

std::string gpu_use_json(std::map<std::string, gpu_node_history> const& nodes) {
    ordered_json all{{"schema", "muster.gpus/1"}, {"nodes", ordered_json::array()}};
    for (auto const& [host, node] : nodes) {
        ordered_json row{{"host", host}, {"at", node.at}, {"gpus", ordered_json::array()}};
        for (auto const& gpu : node.gpus) row["gpus"].push_back(json_of(gpu));
        all["nodes"].push_back(std::move(row));
    }
    return json_text(all, 2) + "\n";
}

struct gpu_use_record::state {
    std::mutex mutex;
    std::condition_variable changed;
    bool writing = false;
};

gpu_use_record::gpu_use_record(event_loop& loop, std::string const& folder)
    : loop_(loop), folder_(folder.empty() ? folder : absolute_path(folder)), state_(std::make_shared<state>()) {}

void gpu_use_record::note(std::string const& host, std::vector<gpu_use> const& uses) {
    if (folder_.empty() || uses.empty() || uses.size() > most_gpus_of_node) return;
    auto& node = nodes_[host];
    node.at = std::time(nullptr);
    node.gpus.resize(uses.size());
    for (std::size_t i = 0; i < uses.size(); ++i) {
        auto& gpu = node.gpus[i];
        gpu.last = uses[i];
        gpu.most_used_bytes = std::max(gpu.most_used_bytes, uses[i].used_bytes);
        if (uses[i].busy_percent < 0) continue;
        gpu.busy_sum += static_cast<std::uint64_t>(uses[i].busy_percent);
        ++gpu.looks;
    }
    write_soon();
}

void gpu_use_record::write_soon() {
    if (std::exchange(due_, true)) return;
    loop_.after(others_come, [this] { write(); });
}

void gpu_use_record::write() {
    due_ = false;
    {
        std::scoped_lock const lock(state_->mutex);
        if (std::exchange(state_->writing, true)) return;  // the next look follows soon
    }
    auto const done = [shared = state_] {
        std::scoped_lock const lock(shared->mutex);
        shared->writing = false;
        shared->changed.notify_all();
    };
    try {
        start_thread("for the record of GPUs", [path = folder_, text = gpu_use_json(nodes_), done] {
            replace_file(path, text);
            done();
        }).detach();
    } catch (error const&) {
        done();
    }
}

gpu_use_record::~gpu_use_record() {
    std::unique_lock lock(state_->mutex);
    bool const idle = state_->changed.wait_for(lock, patience_at_end, [this] { return !state_->writing; });
    if (due_ && idle) replace_file(folder_, gpu_use_json(nodes_));
}

}  // namespace muster
