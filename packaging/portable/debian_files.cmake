# Script of CPack, before it makes the Debian packages (cmake/muster_packages.cmake): what Debian wants in each besides muster's files.
file(GLOB trees ${CPACK_TEMPORARY_DIRECTORY}/*-deb)
foreach(tree IN LISTS trees)
  cmake_path(GET tree FILENAME package)
  string(REGEX REPLACE "-deb$" "" package ${package})
  set(doc ${tree}/usr/share/doc/${package})
  file(WRITE ${doc}/copyright "muster ${CPACK_PACKAGE_VERSION}

Copyright: 2026 muster developers

License: Apache-2.0, in full in /usr/share/common-licenses/Apache-2.0.
What is linked in: /usr/share/doc/muster/licenses in the package muster.
")
  file(WRITE ${doc}/changelog "muster (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * /usr/share/doc/muster/CHANGELOG.md in the package muster.

 -- ${CPACK_PACKAGE_CONTACT}  Thu, 26 Nov 2026 00:00:00 +0000
")
  # The tree of the archive, which can be moved and has a PMIx in it. Templates become scripts later.
  set(overrides "${package}: custom-library-search-path\n${package}: embedded-library\n")
  if(EXISTS ${tree}/usr/share/muster/templates)
    string(APPEND overrides "${package}: script-not-executable *templates*\n${package}: unusual-interpreter *templates*\n")
  endif()
  file(WRITE ${tree}/usr/share/lintian/overrides/${package} "${overrides}")
  if(EXISTS ${tree}/usr/lib/pkgconfig) # where pkg-config of another architecture does not look
    file(GLOB descriptions ${tree}/usr/lib/pkgconfig/*.pc)
    foreach(description IN LISTS descriptions)
      cmake_path(GET description FILENAME name)
      file(READ ${description} text)
      string(REGEX REPLACE "prefix=[^\n]*" "prefix=/usr" text "${text}")
      file(WRITE ${tree}/usr/lib/x86_64-linux-gnu/pkgconfig/${name} "${text}")
    endforeach()
    file(REMOVE_RECURSE ${tree}/usr/lib/pkgconfig)
  endif()
  if(package STREQUAL "python3-muster") # so that Python finds it without `muster run`, too
    file(WRITE ${tree}/usr/lib/python3/dist-packages/muster.pth "/usr/lib/muster/python\n")
  endif()
  file(GLOB pages ${tree}/usr/share/man/man1/*.1)
  execute_process(COMMAND gzip -9n ${doc}/changelog ${pages} COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD_RECURSE ${tree}/usr/share/lintian ${doc} FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
       DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()
