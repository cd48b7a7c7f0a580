// One GPU of this process: its primary context, which the CUDA runtime (and so every framework) uses as well.
#pragma once

#include <memory>
#include <string>

#include "comm/cuda/driver.hpp"

namespace muster::cuda {

/// Owner of a reference to a GPU's primary context. Made shared, since everything that was made in the context must go before it.
/// Thread safe.
class device {
  public:
    /// Retains the primary context of device `ordinal` of those CUDA shows this process. Throws errc::placement if there is no
    /// such device, cuda_error.
    static std::shared_ptr<device const> open(found_driver const& found, int ordinal);

    device(device const&) = delete;
    device& operator=(device const&) = delete;
    ~device();

    driver const& with() const noexcept { return *driver_; }
    int ordinal() const noexcept { return ordinal_; }
    int multiprocessors() const noexcept { return multiprocessors_; }
    std::string const& name() const noexcept { return name_; }  ///< "NVIDIA H100 80GB HBM3"
    std::string const& uuid() const noexcept { return uuid_; }  ///< "GPU-8f6c…", as nvidia-smi prints it

    /// Makes the context the calling thread's until the scope ends, when the one before it is back.
    class scope {
      public:
        explicit scope(device const& of);
        ~scope();
        scope(scope const&) = delete;
        scope& operator=(scope const&) = delete;

      private:
        driver const& driver_;
    };

  private:
    device(driver const& with, int ordinal) noexcept : driver_(&with), ordinal_(ordinal) {}
    driver const* driver_;
    int ordinal_;
    int handle_ = 0;
    int multiprocessors_ = 1;
    context_handle context_ = nullptr;
    std::string name_;
    std::string uuid_;
};

/// Which device is the rank's: `asked` if it is not negative, else that of the calling thread's context (found.use tells), else
/// the only one, else `local_rank`. Throws errc::placement, with what was asked and found, if there is no such device.
int choose_device(found_driver const& found, int asked, int local_rank);

/// "GPU-01234567-89ab-cdef-0123-456789abcdef". Pure.
std::string to_string(device_uuid const& uuid);

}  // namespace muster::cuda
