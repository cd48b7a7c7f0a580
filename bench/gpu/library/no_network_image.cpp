// The image of the training's kernels in a build without nvcc: empty.
#ifndef MUSTER_HAVE_CUDA_KERNELS
#include "bench/gpu/library/network_image.hpp"

namespace muster::cuda {

unsigned char const network_image[1] = {0};
std::size_t const network_image_size = 0;
char const* const network_image_contents = "nothing";

}  // namespace muster::cuda
#endif
