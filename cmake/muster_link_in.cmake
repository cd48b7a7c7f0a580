# How the program muster is linked, so that it starts fast and with any versions of other libraries: see tests/cli/run_libraries_test.sh. With fmt, spdlog, toml++,
# sodium, libstdc++ and libgcc_s as shared libraries a launch of /bin/true takes 18 % more on 8 ranks and 9 % on 32 (medians of 40 pairs; quartiles 13 to 22 % and 8 to 12 %).

# muster_link_in(<program>): PMIx is opened when a run needs it, so that all other commands work without; a run would be 3 to 5 % faster with it linked. The languages'
# libraries, fmt, spdlog, toml++ and sodium become part of the program, and what then is not needed is not loaded. Sanitizers bring functions in place of the languages' libraries', so there all stay shared.
function(muster_link_in program)
  set(folder ${PROJECT_SOURCE_DIR}/launch/linked_in)
  target_sources(${program} PRIVATE ${PROJECT_SOURCE_DIR}/pmix/library/pmix_by_dlopen.cpp ${PROJECT_SOURCE_DIR}/pmix/server/own_bind.cpp)
  target_link_libraries(${program} PRIVATE PkgConfig::pmix ${CMAKE_DL_LIBS}) # headers, and where the library lies
  target_link_options(${program} PRIVATE LINKER:--as-needed)
  # The PMIx library, which the linker does not see, calls the program's accept and bind (pmix/library/accept_own_user.cpp, pmix/server/own_bind.cpp). LLD exports
  # what the C library has too.
  if(NOT MUSTER_PORTABLE)
    target_link_options(${program} PRIVATE LINKER:--export-dynamic-symbol=accept LINKER:--export-dynamic-symbol=bind)
  endif()
  if(MUSTER_SANITIZE OR MUSTER_PORTABLE) # of which all libraries are static
    return()
  endif()
  target_sources(${program} PRIVATE ${folder}/toml_library.cpp)
  target_link_libraries(${program} PRIVATE tomlplusplus::tomlplusplus)
  # What their shared libraries hold differs from version to version: of Debian 12's and 13's, those of others stay shared. A shared one wants the libstdc++ that it
  # was built with, and an environment may put an older one in front (LD_LIBRARY_PATH).
  if((fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10 AND spdlog_VERSION VERSION_LESS 1.11)
     OR (fmt_VERSION VERSION_GREATER_EQUAL 10.1 AND fmt_VERSION VERSION_LESS 10.2 AND spdlog_VERSION VERSION_GREATER_EQUAL 1.15 AND spdlog_VERSION VERSION_LESS 1.16))
    target_sources(${program} PRIVATE ${folder}/fmt_library.cpp ${folder}/spdlog_library.cpp)
  endif()
  find_library(MUSTER_SODIUM_ARCHIVE libsodium.a HINTS ${sodium_LIBDIR})
  if(MUSTER_SODIUM_ARCHIVE)
    target_link_libraries(${program} PRIVATE ${MUSTER_SODIUM_ARCHIVE})
    target_link_options(${program} PRIVATE LINKER:--undefined=crypto_hash_sha256) # base, which uses it, comes behind this archive
  endif()
  target_link_options(${program} PRIVATE -static-libstdc++ -static-libgcc)
endfunction()
