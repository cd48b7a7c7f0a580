# How a folder becomes a target.

add_library(muster_options INTERFACE)
target_compile_options(muster_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers -Wpedantic -Wconversion -Wno-sign-conversion
                       $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>)
# GCC 12 sees overlaps in std::string's operator+ that are not there (GCC bug 105651), and, where <string> is precompiled, overflows too.
set(gcc_false_alarms restrict)
if(MUSTER_PCH)
  list(APPEND gcc_false_alarms array-bounds stringop-overflow stringop-overread)
endif()
foreach(warning IN LISTS gcc_false_alarms)
  target_compile_options(muster_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-${warning}>)
endforeach()
target_compile_options(muster_options INTERFACE -Wshadow)
if(MUSTER_WERROR)
  target_compile_options(muster_options INTERFACE -Werror)
endif()
if(MUSTER_SANITIZE)
  target_compile_options(muster_options INTERFACE -fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(muster_options INTERFACE -fsanitize=${MUSTER_SANITIZE})
  if(MUSTER_SANITIZE MATCHES "undefined")
    target_compile_options(muster_options INTERFACE -fno-sanitize-recover=undefined)
  endif()
endif()

# What most sources include and nobody edits is compiled once, with the flags that all targets share.
set(MUSTER_PRECOMPILED <algorithm> <array> <atomic> <charconv> <chrono> <condition_variable> <cstdint> <cstring> <filesystem> <fstream> <functional>
    <map> <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread> <unordered_map> <utility> <vector> <fmt/format.h>)
if(MUSTER_PCH)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "\n")
  add_library(muster_headers OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
  target_compile_features(muster_headers PRIVATE cxx_std_20)
  target_link_libraries(muster_headers PRIVATE fmt::fmt spdlog::spdlog Threads::Threads muster_options)
  target_precompile_headers(muster_headers PRIVATE ${MUSTER_PRECOMPILED})
endif()

function(muster_precompile target)
  if(MUSTER_PCH)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")  # as these headers are: position-independent as a library is
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fPIC>)
    endif()
    target_precompile_headers(${target} REUSE_FROM muster_headers)
  endif()
endfunction()

# GCC 13 and later take precompiled headers only with the same settings of these, which go by the level of optimisation.
set(same_for_headers "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13 AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND
   CMAKE_CXX_FLAGS_RELEASE MATCHES "-O[23]")
  set(same_for_headers -munroll-only-small-loops -mvzeroupper)
endif()

# muster_cold(<target>): less optimised in a release, where the time goes into files, processes and waiting: that compiles faster.
function(muster_cold target)
  target_compile_options(${target} PRIVATE "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1;${same_for_headers}>")
endfunction()

# muster_library(<name> [PUBLIC <libs>...] [PRIVATE <libs>...] [ONLY <regex>] [WITHOUT <regexes>...]): library muster::<name> from every .cpp
# in this folder and below, or those whose paths from here match ONLY, but the mains (*_main.cpp) and what matches WITHOUT.
function(muster_library name)
  cmake_parse_arguments(arg "" "ONLY" "PUBLIC;PRIVATE;WITHOUT" ${ARGN})
  file(GLOB_RECURSE sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS *.cpp)
  list(FILTER sources INCLUDE REGEX "${arg_ONLY}")
  foreach(pattern IN ITEMS "_main\\.cpp$" LISTS arg_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "${pattern}")
  endforeach()
  set(target muster_${name})
  add_library(${target} STATIC ${sources})
  add_library(muster::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/muster>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE} $<BUILD_INTERFACE:muster_options>)
  muster_precompile(${target})
endfunction()

# muster_program(<name> <main source> COMPONENT <component> [DESTINATION <folder>] <libs>...): a program, installed.
function(muster_program name source)
  cmake_parse_arguments(arg "" "COMPONENT;DESTINATION" "" ${ARGN})
  if(NOT arg_DESTINATION)
    set(arg_DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ${arg_UNPARSED_ARGUMENTS} muster_options)
  install(TARGETS ${name} DESTINATION ${arg_DESTINATION} COMPONENT ${arg_COMPONENT})
endfunction()
