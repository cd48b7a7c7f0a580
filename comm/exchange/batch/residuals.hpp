// Residuals keep what rounding has lost, tensor by tensor.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "comm/cuda/handles.hpp"

namespace muster::detail {

/// A residual's name. Process sets and requests have separate tensors.
void name_residual(std::string& into, int set, std::string_view request, std::string_view tensor);

/// Of compressed allreduces with error feedback. Not thread safe.
class residuals {
  public:
    /// Of this tensor of a request: zeros the first time, and when it has another number of elements than before. Valid until the
    /// next call for the same tensor.
    std::span<float> of(int set, std::string_view request, std::string_view tensor, std::size_t count);
    /// Those of a set that is no more.
    void forget(int set);

  private:
    std::unordered_map<std::string, std::vector<float>> by_name_;
    std::string key_;  // kept for its memory
};

/// The same in device memory. Not thread safe.
class device_residuals {
  public:
    /// Null where there is none of so many elements.
    float* find(int set, std::string_view request, std::string_view tensor, std::size_t count);
    /// Creates it if it is missing, zeroed on `stream`. Asks the driver for memory: see device_batch. Throws cuda_error.
    void make(int set, std::string_view request, std::string_view tensor, std::size_t count,
              std::shared_ptr<cuda::device const> const& on, cuda::stream_handle stream);
    /// Those of a set that is no more, when the device is through with them.
    void forget(int set);

  private:
    struct entry {
        std::shared_ptr<cuda::device const> on;  // before what is on it
        cuda::unique_memory memory;
        std::size_t count = 0;
    };
    std::unordered_map<std::string, entry> by_name_;
    std::string key_;  // kept for its memory
};

}  // namespace muster::detail
