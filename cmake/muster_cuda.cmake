# Kernels for NVIDIA GPUs: compiled by nvcc to a fat binary that muster_comm carries as bytes and hands to the CUDA driver, which it loads at run time.
# Nothing links the CUDA runtime, and CMake's CUDA language, which would, is not used. Without nvcc the library is built without kernels and says so.

set(MUSTER_WITH_CUDA AUTO CACHE STRING "CUDA kernels, by nvcc: AUTO, ON or OFF")
set(MUSTER_CUDA_ARCHITECTURES "80;90" CACHE STRING "Compute capabilities of the kernels: a binary and PTX for each")

set(MUSTER_NVCC_FLAGS -std=c++17 -O3)
set(binaries "")
foreach(architecture IN LISTS MUSTER_CUDA_ARCHITECTURES)
  list(APPEND binaries "sm_${architecture}")
  list(APPEND MUSTER_NVCC_FLAGS -gencode arch=compute_${architecture},code=[sm_${architecture},compute_${architecture}])
endforeach()
list(JOIN binaries ", " MUSTER_CUDA_CONTENTS)
string(APPEND MUSTER_CUDA_CONTENTS " and PTX of each")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND MUSTER_NVCC_FLAGS -ccbin ${CMAKE_CXX_COMPILER})
endif()

# Whether nvcc and the host's compiler can do it: tried once for each of them.
function(muster_probe_nvcc works why)
  set(key "${MUSTER_NVCC}|${MUSTER_NVCC_FLAGS}")
  if(NOT "${MUSTER_NVCC_PROBED}" STREQUAL "${key}")
    set(folder ${CMAKE_BINARY_DIR}/CMakeFiles/muster_nvcc)
    file(WRITE ${folder}/probe.cu "#include <cuda_bf16.h>\n__global__ void probe(__nv_bfloat16* to, float from) { *to = __float2bfloat16_rn(from); }\n")
    execute_process(COMMAND ${MUSTER_NVCC} -fatbin ${MUSTER_NVCC_FLAGS} -o ${folder}/probe.fatbin ${folder}/probe.cu RESULT_VARIABLE code
                    OUTPUT_VARIABLE output ERROR_VARIABLE output)
    string(REGEX MATCH "[^\n]*(error|unsupported|fatal)[^\n]*" first_line "${output}")
    if(code EQUAL 0)
      set(first_line "")
    elseif(NOT first_line)
      set(first_line "it failed with ${code}")
    endif()
    set(MUSTER_NVCC_PROBED "${key}" CACHE INTERNAL "what was tried")
    set(MUSTER_NVCC_FAULT "${first_line}" CACHE INTERNAL "what nvcc said, or nothing")
  endif()
  if(MUSTER_NVCC_FAULT)
    set(${works} OFF PARENT_SCOPE)
  else()
    set(${works} ON PARENT_SCOPE)
  endif()
  set(${why} "${MUSTER_NVCC_FAULT}" PARENT_SCOPE)
endfunction()

set(MUSTER_HAVE_CUDA_KERNELS OFF)
if(MUSTER_WITH_CUDA STREQUAL "OFF")
  set(kernels_missing "MUSTER_WITH_CUDA is OFF")
else()
  find_program(MUSTER_NVCC nvcc HINTS ${CUDAToolkit_BIN_DIR} $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
  if(MUSTER_NVCC)
    muster_probe_nvcc(MUSTER_HAVE_CUDA_KERNELS fault)
    set(kernels_missing "${MUSTER_NVCC}: ${fault}")
  else()
    set(kernels_missing "there is no nvcc")
  endif()
  if(MUSTER_WITH_CUDA STREQUAL "ON" AND NOT MUSTER_HAVE_CUDA_KERNELS)
    message(FATAL_ERROR "MUSTER_WITH_CUDA is ON but CUDA kernels cannot be built: ${kernels_missing}; install a CUDA toolkit (11.8 or later) that takes this "
                        "C++ compiler, or set MUSTER_NVCC or MUSTER_CUDA_ARCHITECTURES")
  endif()
endif()
if(MUSTER_HAVE_CUDA_KERNELS)
  muster_found("CUDA kernels" "${MUSTER_CUDA_CONTENTS} (${MUSTER_NVCC})")
else()
  muster_found("CUDA kernels" "none: ${kernels_missing}")
endif()

# muster_cuda_image(<target> <source.cu> <image> <header of the image> <headers>...): compiles the kernels and gives them to the target as the array
# muster::cuda::<image>, which its header declares.
function(muster_cuda_image target source name header)
  set(fatbin ${CMAKE_CURRENT_BINARY_DIR}/${name}.fatbin)
  set(image ${CMAKE_CURRENT_BINARY_DIR}/${name}_bytes.cpp)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set(embed ${PROJECT_SOURCE_DIR}/cmake/muster_embed.cmake)
  add_custom_command(OUTPUT ${image}
    COMMAND ${MUSTER_NVCC} -fatbin ${MUSTER_NVCC_FLAGS} -I ${PROJECT_SOURCE_DIR} -o ${fatbin} ${CMAKE_CURRENT_SOURCE_DIR}/${source}
    COMMAND ${CMAKE_COMMAND} -D INPUT=${fatbin} -D OUTPUT=${image} -D NAME=${name} -D HEADER=${header} "-DCONTENTS=${MUSTER_CUDA_CONTENTS}" -P ${embed}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source} ${ARGN} ${embed} COMMENT "CUDA kernels ${source}" VERBATIM COMMAND_EXPAND_LISTS)
  target_sources(${target} PRIVATE ${image})
  target_compile_definitions(${target} PRIVATE MUSTER_HAVE_CUDA_KERNELS=1)
endfunction()
