# Script of CPack, before it makes the Debian packages (cmake/muster_packages.cmake): what Debian wants in each besides muster's files.
file(GLOB trees ${CPACK_TEMPORARY_DIRECTORY}/*-deb)
foreach(tree IN LISTS trees)
  cmake_path(GET tree FILENAME package)
  string(REGEX REPLACE "-deb$" "" package ${package})
  set(doc ${tree}/usr/share/doc/${package})
  file(WRITE ${doc}/copyright "muster ${CPACK_PACKAGE_VERSION}

License: Apache-2.0, in full in /usr/share/common-licenses/Apache-2.0.
What is linked in: /usr/share/doc/muster/licenses in the package muster.
")
  file(WRITE ${doc}/changelog "muster (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * /usr/share/doc/muster/CHANGELOG.md in the package muster.

 -- ${CPACK_PACKAGE_CONTACT}  Thu, 26 Nov 2026 00:00:00 +0000
")
  # The tree of the archive, which can be moved and has a PMIx in it.
  file(WRITE ${tree}/usr/share/lintian/overrides/${package} "${package}: custom-library-search-path\n${package}: embedded-library\n")
  if(EXISTS ${tree}/usr/lib/muster/python) # so that Python finds it without `muster run`, too
    file(WRITE ${tree}/usr/lib/python3/dist-packages/muster.pth "/usr/lib/muster/python\n")
  endif()
  file(GLOB pages ${tree}/usr/share/man/man1/*.1)
  execute_process(COMMAND gzip -9n ${doc}/changelog ${pages} COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD_RECURSE ${tree}/usr/share/lintian ${doc} FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
       DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()
