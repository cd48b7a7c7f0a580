#include "base/process/process_starter.hpp"

#include <utility>

namespace muster {

process_starter::~process_starter() {
    {
        std::scoped_lock const guard(lock_);
        ends_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

std::future<pid_t> process_starter::start(process_request request) {
    std::packaged_task<pid_t()> task([request = std::move(request)] { return start_process(request); });
    auto result = task.get_future();
    {
        std::scoped_lock const guard(lock_);
        open_.push_back(std::move(task));
    }
    changed_.notify_one();
    return result;
}

void process_starter::run() {
    for (;;) {
        std::unique_lock guard(lock_);
        changed_.wait(guard, [this] { return ends_ || !open_.empty(); });
        if (open_.empty()) return;
        auto task = std::move(open_.front());
        open_.pop_front();
        guard.unlock();
        task();
    }
}

}  // namespace muster
