// The image of kernels in a build without nvcc is empty.
#ifndef MUSTER_HAVE_CUDA_KERNELS
#include "comm/cuda/fusion_image.hpp"

namespace muster::cuda {

unsigned char const fusion_image[1] = {0};
std::size_t const fusion_image_size = 0;
char const* const fusion_image_contents = "nothing";

}  // namespace muster::cuda
#endif
