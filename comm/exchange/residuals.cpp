#include "comm/exchange/internal/residuals.hpp"

namespace muster::detail {

std::span<float> residuals::of(int set, std::string_view request, std::string_view tensor, std::size_t count) {
    key_.assign(request);
    key_ += '\0';
    key_ += tensor;
    key_ += '\0';
    key_ += std::to_string(set);
    auto& found = by_name_[key_];
    if (found.size() != count) found.assign(count, 0.0f);
    return found;
}

}  // namespace muster::detail
