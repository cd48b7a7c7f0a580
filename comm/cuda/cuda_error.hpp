// The error of a call to the CUDA driver.
#pragma once

#include "base/error.hpp"

namespace muster {

/// An error of the CUDA driver, with the call's name and the driver's own code.
class cuda_error : public library_error {
  public:
    cuda_error(std::string_view call, int native_code, std::string_view text) : library_error("CUDA", call, native_code, text) {}
};

}  // namespace muster
