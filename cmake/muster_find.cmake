# Finds what muster builds on and remembers, for the summary table, what was found and what follows from it.

set_property(GLOBAL PROPERTY MUSTER_SUMMARY "")

function(muster_found what state)
  set_property(GLOBAL APPEND PROPERTY MUSTER_SUMMARY "${what}|${state}")
endfunction()

# muster_pkg(<target> <pkg-config module> [">=version"]): a required library as imported target PkgConfig::<target>.
function(muster_pkg target module)
  pkg_check_modules(${target} REQUIRED IMPORTED_TARGET GLOBAL "${module}${ARGN}")
  muster_found("${module}" "${${target}_VERSION}")
endfunction()

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(nlohmann_json REQUIRED)
# Boost.Program_options, where it can be had as a static library: a program that looks for one more shared library starts later.
set(Boost_USE_STATIC_LIBS ON)
find_package(Boost QUIET CONFIG COMPONENTS program_options)
if(NOT Boost_FOUND)
  set(Boost_USE_STATIC_LIBS OFF)
  find_package(Boost REQUIRED CONFIG COMPONENTS program_options)
endif()
find_path(MUSTER_MUSTACHE_INCLUDE kainjow/mustache.hpp REQUIRED)
muster_pkg(pmix pmix ">=4.2") # earlier ones lack codes of events
if(MUSTER_PORTABLE) # whose programs and libraries open it at run time: of its target only the headers stay
  set_target_properties(PkgConfig::pmix PROPERTIES INTERFACE_LINK_LIBRARIES "" INTERFACE_LINK_OPTIONS "")
endif()
muster_pkg(hwloc hwloc)
muster_pkg(sodium libsodium ">=1.0.14") # the first with secretstream
muster_found("fmt, spdlog" "${fmt_VERSION}, ${spdlog_VERSION}")

if(NOT MUSTER_LAUNCHER_ONLY)
  include(muster_find_libraries)
endif()

function(muster_print_summary)
  muster_parts_text(text)
  muster_found("parts" "${text}")
  get_property(rows GLOBAL PROPERTY MUSTER_SUMMARY)
  set(table "muster ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}")
  if(MUSTER_SANITIZE)
    string(APPEND table ", sanitizers ${MUSTER_SANITIZE}")
  endif()
  foreach(row IN LISTS rows)
    string(REPLACE "|" ";" cells "${row}")
    list(GET cells 0 what)
    list(GET cells 1 state)
    string(LENGTH "${what}" width)
    math(EXPR pad "24 - ${width}")
    string(REPEAT " " ${pad} blanks)
    string(APPEND table "\n  ${what}${blanks}${state}")
  endforeach()
  message(STATUS "${table}")
endfunction()
