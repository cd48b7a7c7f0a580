# What is installed, in components: launcher (muster and its data), libraries (libmuster_comm.so and its modules), development (headers, static libraries,
# find_package, pkg-config), python, and those of parts: data, bench, keras (muster_parts.cmake). Programs name theirs where they are added.

# muster_headers_of(<variable> <headers>...): these headers and all that they include, and those in turn, by their paths from the source folder.
function(muster_headers_of variable)
  set(todo ${ARGN})
  set(found "")
  while(todo)
    list(POP_FRONT todo header)
    if(header IN_LIST found OR NOT EXISTS ${PROJECT_SOURCE_DIR}/${header})
      continue()
    endif()
    list(APPEND found ${header})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^#include \"")
    list(TRANSFORM lines REPLACE "^#include \"([^\"]+)\".*" "\\1")
    list(APPEND todo ${lines})
  endwhile()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# muster_install_headers(<headers>...): public headers, with what they include.
function(muster_install_headers)
  foreach(header IN LISTS ARGN)
    if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${header})
      message(FATAL_ERROR "the public header ${header} is not there")
    endif()
  endforeach()
  muster_headers_of(headers ${ARGN})
  foreach(header IN LISTS headers)
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/muster/${folder} COMPONENT development)
  endforeach()
endfunction()

# muster_install_archives(<part> <folders>...): static libraries for C++ programs, as muster::<folder> in the part of find_package.
function(muster_install_archives part)
  if(MUSTER_PORTABLE) # libc++'s: programs of others have another library
    return()
  endif()
  list(TRANSFORM ARGN PREPEND muster_ OUTPUT_VARIABLE targets)
  install(TARGETS ${targets} EXPORT muster-${part} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endfunction()

# muster_install_pkg_config(<name> <library> <description>): NAME.pc, with which programs of C find one of the shared libraries.
function(muster_install_pkg_config name library description)
  set(folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH up /prefix/${folder} /prefix) # so that an installed tree can be moved
  string(REGEX REPLACE "/$" "" up "${up}")
  configure_file(${PROJECT_SOURCE_DIR}/cmake/muster.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${folder} COMPONENT development)
endfunction()

# muster_install_step(before|after): what else an installation of all, or of the launcher, does (muster_upgrade.cmake).
function(muster_install_step step)
  install(CODE "set(step ${step})\nset(data \"${CMAKE_INSTALL_DATADIR}\")\nset(libdir \"${CMAKE_INSTALL_LIBDIR}\")\nset(version ${PROJECT_VERSION})\nset(source \"${PROJECT_SOURCE_DIR}\")\ninclude(\"${PROJECT_SOURCE_DIR}/cmake/muster_upgrade.cmake\")"
          COMPONENT launcher)
endfunction()

# find_package(muster), pkg-config, documents.
function(muster_install_package)
  set(doc ${PROJECT_SOURCE_DIR})
  install(FILES ${doc}/README.md ${doc}/LICENSE ${doc}/CHANGELOG.md ${doc}/CONTRIBUTING.md ${doc}/SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT launcher)
  install(DIRECTORY ${doc}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT launcher PATTERN __pycache__ EXCLUDE) # these two: what documents point to
  install(DIRECTORY ${doc}/bench/results DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench COMPONENT launcher)
  install(DIRECTORY ${doc}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT launcher OPTIONAL FILES_MATCHING PATTERN "*.md")
  if(NOT TARGET muster_comm)
    return()
  endif()
  muster_install_pkg_config(muster muster_comm "Collectives of named tensors over the ranks of a job: the C interface")
  if(MUSTER_PORTABLE)
    install(FILES ${MUSTER_PORTABLE_LIBRARIES}/libmuster_pmix.so.2 DESTINATION ${CMAKE_INSTALL_LIBDIR}/muster COMPONENT libraries)
    install(DIRECTORY ${MUSTER_PORTABLE_LICENSES} DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT launcher)
    return()
  endif()
  include(CMakePackageConfigHelpers)
  set(where ${CMAKE_INSTALL_LIBDIR}/cmake/muster)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/muster-config.cmake.in ${PROJECT_BINARY_DIR}/muster-config.cmake
                                INSTALL_DESTINATION ${where} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/muster-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/muster-config.cmake ${PROJECT_BINARY_DIR}/muster-config-version.cmake DESTINATION ${where} COMPONENT development)
  set(parts comm_c comm)
  if(TARGET muster_io)
    list(APPEND parts io)
    install(FILES ${PROJECT_SOURCE_DIR}/cmake/muster_find_hdf5.cmake DESTINATION ${where} COMPONENT development)
  endif()
  foreach(part IN LISTS parts)
    install(EXPORT muster-${part} NAMESPACE muster:: FILE muster-${part}.cmake DESTINATION ${where} COMPONENT development)
  endforeach()
endfunction()
