#include "comm/nccl/library/nccl_runtime.hpp"

#include <atomic>
#include <map>
#include <mutex>

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

unsigned next_epoch() noexcept {
    static std::atomic<unsigned> last{0};
    return ++last;
}

}  // namespace muster::nccl
