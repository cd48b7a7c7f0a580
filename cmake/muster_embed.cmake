# Script: the bytes of INPUT as C++ in OUTPUT. See muster_cuda.cmake.
file(READ ${INPUT} bytes HEX)
file(SIZE ${INPUT} size)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"comm/cuda/fusion_image.hpp\"

namespace muster::cuda {

alignas(16) unsigned char const fusion_image[] = {
${bytes}
};
std::size_t const fusion_image_size = ${size};
char const* const fusion_image_contents = \"${CONTENTS}\";

}  // namespace muster::cuda
")
