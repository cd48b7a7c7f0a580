// The fat binary of network_kernels.cu, as the build made it.
#pragma once

#include <cstddef>

namespace muster::cuda {

extern unsigned char const network_image[];       ///< one meaningless byte where the build had no nvcc
extern std::size_t const network_image_size;      ///< 0 then
extern char const* const network_image_contents;  ///< "sm_80, sm_90 and PTX of each"

}  // namespace muster::cuda
