// The fat binary of fusion_kernels.cu, as the build made it.
#pragma once

#include <cstddef>

namespace muster::cuda {

extern unsigned char const fusion_image[];       ///< one meaningless byte if the build had no nvcc
extern std::size_t const fusion_image_size;      ///< … then 0
extern char const* const fusion_image_contents;  ///< "sm_80, sm_90, PTX 8.0, 9.0"

}  // namespace muster::cuda
