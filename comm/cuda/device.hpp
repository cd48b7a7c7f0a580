// One GPU of this process: its primary context, which the CUDA runtime (and so every framework) also uses.
#pragma once

#include <memory>
#include <string>

#include "comm/cuda/driver.hpp"

namespace muster::cuda {

/// Owner of a reference to a GPU's primary context. It is shared, since everything made in the context must be destroyed before
/// it. Thread safe.
class device {
  public:
    /// Retains the primary context of device `ordinal` among those that CUDA shows this process. Throws errc::placement if there
    /// is no such device, cuda_error.
    static std::shared_ptr<device const> open(found_driver const& found, int ordinal);

    device(device const&) = delete;
    device& operator=(device const&) = delete;
    ~device();

    driver const& with() const noexcept { return *driver_; }
    int ordinal() const noexcept { return ordinal_; }
    int multiprocessors() const noexcept { return multiprocessors_; }
    std::string const& name() const noexcept { return name_; }  ///< "NVIDIA H100 80GB HBM3"
    std::string const& uuid() const noexcept { return uuid_; }  ///< "GPU-8f6c…", as nvidia-smi prints it

    /// Makes the context current for the calling thread until the scope ends; then the earlier one is current again.
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

/// Returns the rank's device: `asked` if it is not negative, else that of the calling thread's context (found.use knows it), else
/// the only one, else `local_rank`. Throws errc::placement, with what was asked and found, if there is no such device.
int choose_device(found_driver const& found, int asked, int local_rank);

/// Returns "GPU-01234567-89ab-cdef-0123-456789abcdef". Pure.
std::string to_string(device_uuid const& uuid);

}  // namespace muster::cuda
