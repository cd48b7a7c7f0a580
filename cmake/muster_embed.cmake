# Script: the bytes of INPUT as the C++ array NAME, which HEADER declares, in OUTPUT. See muster_cuda.cmake.
file(READ ${INPUT} bytes HEX)
file(SIZE ${INPUT} size)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"${HEADER}\"

namespace muster::cuda {

alignas(16) unsigned char const ${NAME}[] = {
${bytes}
};
std::size_t const ${NAME}_size = ${size};
char const* const ${NAME}_contents = \"${CONTENTS}\";

}  // namespace muster::cuda
")
