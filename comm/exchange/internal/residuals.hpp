// What rounding has lost, tensor by tensor.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muster::detail {

/// Of compressed allreduces with error feedback. Not thread safe.
class residuals {
  public:
    /// Of this tensor of a request: zeros the first time, and when it has another number of elements than before. Valid until the
    /// next call for the same tensor.
    std::span<float> of(int set, std::string_view request, std::string_view tensor, std::size_t count);

  private:
    std::unordered_map<std::string, std::vector<float>> by_name_;
    std::string key_;  // kept for its memory
};

}  // namespace muster::detail
