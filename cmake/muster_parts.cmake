# The parts that a build may leave out, beside the core: base, pmix, jobscripts, comm, launch and Python, without what belongs to a part. Dependencies go from a part
# to the core. A part is the sources that its line in packaging/parts.txt names, targets, an install component and, where it has files of its own, a Debian package.
set(MUSTER_ALL_PARTS data bench jobs keep preflight keras)
set(MUSTER_PARTS all CACHE STRING "Parts beside the core: all, none, or a list of data, bench, jobs, keep, preflight and keras")

string(REPLACE "," ";" MUSTER_BUILT_PARTS "${MUSTER_PARTS}")
set(MUSTER_NAMED_PARTS ${MUSTER_BUILT_PARTS}) # that somebody asked for by name: what such a part lacks is an error
if(MUSTER_BUILT_PARTS STREQUAL "all")
  set(MUSTER_BUILT_PARTS ${MUSTER_ALL_PARTS})
elseif(MUSTER_BUILT_PARTS STREQUAL "none")
  set(MUSTER_BUILT_PARTS "")
endif()
list(JOIN MUSTER_ALL_PARTS ", " known_parts)
foreach(part IN LISTS MUSTER_BUILT_PARTS)
  if(NOT part IN_LIST MUSTER_ALL_PARTS)
    message(FATAL_ERROR "MUSTER_PARTS has '${part}', which is no part of muster; the parts are ${known_parts}; give some of them, as in -DMUSTER_PARTS=data,jobs, or all, or none")
  endif()
endforeach()

# muster_without_part(<part> <why>): leaves it out; an error if it was asked for by name.
macro(muster_without_part part why)
  if("${part}" IN_LIST MUSTER_NAMED_PARTS)
    message(FATAL_ERROR "MUSTER_PARTS names the part ${part}, which cannot be built: ${why}; take it out of MUSTER_PARTS")
  endif()
  list(REMOVE_ITEM MUSTER_BUILT_PARTS ${part})
endmacro()

if(MUSTER_LAUNCHER_ONLY)
  foreach(part IN ITEMS data bench keras)
    muster_without_part(${part} "it needs the libraries, which MUSTER_LAUNCHER_ONLY leaves out")
  endforeach()
elseif(MUSTER_WHEEL)
  muster_without_part(bench "a wheel has no benchmarks (MUSTER_WHEEL)")
endif()

# muster_parts_text(<variable>): "bench, jobs, keras (without data)".
function(muster_parts_text variable)
  set(left_out ${MUSTER_ALL_PARTS})
  list(REMOVE_ITEM left_out "" ${MUSTER_BUILT_PARTS})
  list(JOIN MUSTER_BUILT_PARTS ", " text)
  if(NOT text)
    set(text "none")
  endif()
  if(left_out)
    list(JOIN left_out ", " without)
    string(APPEND text " (without ${without})")
  endif()
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# muster_part_functions(<file> <parts>...): writes muster::functions_of_parts(), with what add_PART() of each adds, for the program muster.
function(muster_part_functions file)
  set(declared "")
  set(added "")
  foreach(part IN LISTS ARGN)
    string(APPEND declared "void add_${part}(part_functions& to);\n")
    string(APPEND added "    add_${part}(all);\n")
  endforeach()
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT "// The functions of the parts in this build, by cmake/muster_parts.cmake.
#include \"launch/settings/part_functions.hpp\"

namespace muster {

@declared@
part_functions functions_of_parts() {
    part_functions all;
@added@    return all;
}

}  // namespace muster
")
endfunction()
