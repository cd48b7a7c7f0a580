// A thread that starts processes: lets its owner prepare the next one meanwhile.
#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "base/process/process.hpp"
#include "base/process/start_thread.hpp"

namespace muster {

/// Starts processes in the order they are given. To start one is mostly to wait until the kernel has loaded its program, so two
/// processors nearly halve the time of many. The processes get their death signal when this object is destroyed, so it must outlive
/// them. `start` may be called from any thread.
class process_starter {
  public:
    process_starter() : thread_(start_thread("to start processes", [this] { run(); })) {}
    ~process_starter();  ///< starts what was given before
    process_starter(process_starter const&) = delete;
    process_starter& operator=(process_starter const&) = delete;

    /// As start_process, whose errors the future throws. What `request` refers to must live until the future is ready.
    std::future<pid_t> start(process_request request);

  private:
    void run();

    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<std::packaged_task<pid_t()>> open_;
    bool ends_ = false;
    std::thread thread_;  ///< last: it uses the others
};

}  // namespace muster
