// The error of a call to NCCL.
#pragma once

#include "base/error.hpp"

namespace muster {

/// An error of NCCL, with the call's name and NCCL's own code. But for an invalid argument its communicator is of no use any
/// more.
class nccl_error : public library_error {
  public:
    nccl_error(std::string_view call, int native_code, std::string_view text) : library_error("NCCL", call, native_code, text) {}
};

}  // namespace muster
