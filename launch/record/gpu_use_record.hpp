// Records how a run's GPUs are used: the file gpus.json in its folder, replaced every few seconds while the run lasts.
#pragma once

#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launch/hardware/gpu_state.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// Holds what is known about one GPU of a run.
struct gpu_history {
    gpu_use last;
    std::uint64_t looks = 0;     ///< those for which it is known how busy it was
    std::uint64_t busy_sum = 0;  ///< the sum of their percentages
    std::uint64_t most_used_bytes = 0;
};

struct gpu_node_history {
    std::time_t at = 0;             ///< the last look, by the launcher's clock
    std::vector<gpu_history> gpus;  ///< in the node's order
};

/// The file's name in the run's folder.
inline constexpr char const* gpu_use_file = "gpus.json";

/// Returns its text (schema `muster.gpus/1`); `nodes` is by host. Pure.
std::string gpu_use_json(std::map<std::string, gpu_node_history> const& nodes);

/// Writes together what nodes report at about the same time, on a thread, since a shared file system may block a process for
/// long. A file that cannot be written stays as it was: that does not end a run.
class gpu_use_record {
  public:
    /// `folder` may be empty: then it writes nothing.
    gpu_use_record(event_loop& loop, std::string const& folder);
    /// Writes the rest, unless the file system does not answer.
    ~gpu_use_record();
    gpu_use_record(gpu_use_record const&) = delete;
    gpu_use_record& operator=(gpu_use_record const&) = delete;

    void note(std::string const& host, std::vector<gpu_use> const& uses);

  private:
    struct state;  // shared with the thread that writes
    void write_soon();
    void write();

    event_loop& loop_;
    std::string folder_;
    std::map<std::string, gpu_node_history> nodes_;
    bool due_ = false;
    std::shared_ptr<state> state_;
};

}  // namespace muster
