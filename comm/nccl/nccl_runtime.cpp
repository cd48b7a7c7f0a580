#include "comm/nccl/nccl_runtime.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

namespace muster::nccl {

std::shared_ptr<runtime> runtime::acquire(library const& with) {
    static std::mutex lock;
    static std::map<library const*, std::weak_ptr<runtime>> all;
    std::scoped_lock const guard(lock);
    auto& known = all[&with];
    auto owner = known.lock();
    if (!owner) known = owner = std::make_shared<runtime>(with);
    return owner;
}

void keep_forever(std::shared_ptr<void const> what) {
    static std::mutex lock;
    static auto& kept = *new std::vector<std::shared_ptr<void const>>;
    std::scoped_lock const guard(lock);
    kept.push_back(std::move(what));
}

unsigned next_epoch() noexcept {
    static std::atomic<unsigned> last{0};
    return ++last;
}

}  // namespace muster::nccl
