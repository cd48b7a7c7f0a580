#include "comm/exchange/batch/exchange_context.hpp"

#include <algorithm>
#include <bit>

namespace muster::detail {

void name_residual(std::string& into, int set, std::string_view request, std::string_view tensor) {
    into.assign(request);
    into += '\0';
    into += tensor;
    into += '\0';
    into += std::to_string(set);
}

std::span<float> residuals::of(int set, std::string_view request, std::string_view tensor, std::size_t count) {
    name_residual(key_, set, request, tensor);
    auto& found = by_name_[key_];
    if (found.size() != count) found.assign(count, 0.0f);
    return found;
}

namespace {

/// See name_residual.
template <typename Named>
void forget_set(Named& by_name, int set) {
    std::string const end = '\0' + std::to_string(set);
    std::erase_if(by_name, [&](auto const& each) { return each.first.ends_with(end); });
}

}  // namespace

void residuals::forget(int set) {
    forget_set(by_name_, set);
}

void device_residuals::forget(int set) {
    forget_set(by_name_, set);
}

float* device_residuals::find(int set, std::string_view request, std::string_view tensor, std::size_t count) {
    name_residual(key_, set, request, tensor);
    auto const found = by_name_.find(key_);
    if (found == by_name_.end() || found->second.count != count) return nullptr;
    return std::bit_cast<float*>(found->second.memory.get().handle);
}

void device_residuals::make(int set, std::string_view request, std::string_view tensor, std::size_t count,
                            std::shared_ptr<cuda::device const> const& on, cuda::stream_handle stream) {
    if (find(set, request, tensor, count) != nullptr) return;
    std::size_t const bytes = std::max<std::size_t>(count, 1) * sizeof(float);
    entry made{on, cuda::make_memory(*on, bytes), count};
    cuda::device::scope const current(*on);
    cuda::check(on->with(), on->with().fill(made.memory.get().handle, 0, bytes, stream), "cuMemsetD8Async");
    by_name_.insert_or_assign(key_, std::move(made));
}

}  // namespace muster::detail
