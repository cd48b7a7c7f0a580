// A FAKE CUDA driver and a FAKE NCCL in one library, for tests without a GPU: "device memory" is host memory, a stream is a list
// of tasks that are run when somebody asks, and ranks are threads of one process. It records calls and can be told to hang or to
// fail. Where the variable MUSTER_FAKE_GPU_FOLDER names a folder, ranks are processes that meet there (blackboard.hpp), and a
// thread runs the streams, as a device goes on by itself. Nothing that it does shows that real GPUs or the real NCCL behave so.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace muster::fake {

/// What completes when a stream comes to it.
struct marker {
    bool passed = false;
};

/// Something on a stream: run again and again, in the stream's order, until it says that it has finished.
using task = std::function<bool()>;

struct stream {
    std::deque<task> tasks;
    void const* context = nullptr;  ///< of the device it is on; null: of a program that has made none current
    bool destroyed = false;         ///< it ends with its last task
};

struct event {
    std::shared_ptr<marker> last;  ///< null: never recorded
};

/// Everything there is. All of it belongs to `lock`, under which tasks run too.
struct machine {
    std::mutex lock;
    std::map<std::string, int> knobs;  ///< see fake_set
    std::string log;                   ///< a line for each call worth telling
    stream default_stream;
    std::vector<stream*> streams{&default_stream};

    int knob(std::string const& name, int otherwise = 0) const {
        auto const found = knobs.find(name);
        return found == knobs.end() ? otherwise : found->second;
    }
    void note(std::string const& line) { log += line + "\n"; }
    bool goes_by_itself = false;  ///< a thread does what pump() does, and so pump() nothing
    /// Runs what can run, whoever asks.
    void pump() {
        if (!goes_by_itself) run();
    }
    void run();
    /// Whether nothing is left on the streams of a device.
    bool is_idle(void const* context) const;
};
machine& the_machine();

/// Puts it on a stream. A code of the driver's.
int put_on(void* on, task what);
/// The same for what is done at once when the stream comes to it.
int put_work(void* on, std::function<void()> work);

}  // namespace muster::fake

extern "C" {
/// Sets a knob: "init_code" (of cuInit), "devices", "freeze" (streams stand still), "freeze_default" (the default one does),
/// "last_first" (what was put on the stream made last runs as soon as it may, so that a stream that does not wait comes too early),
/// "nccl_version", "init_hangs", "init_fails" (with that code, asynchronously), "split_hangs", "start_polls" (how often a
/// collective is still in progress after its call), "async_error" (what every communicator tells), "call_fails" (with that code),
/// "abort_hangs", "finalize_hangs".
void fake_set(char const* knob, int value);
/// Forgets knobs and log.
void fake_reset();
/// Copies the log.
void fake_log(char* into, unsigned long size);
}
