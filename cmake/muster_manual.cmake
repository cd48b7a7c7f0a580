# Man pages: what a program prints about itself in Markdown, with the sections of docs/environment.md that concern it, written by lowdown as man reads it.
find_program(MUSTER_LOWDOWN lowdown)
if(MUSTER_LOWDOWN)
  muster_found("man pages" "by ${MUSTER_LOWDOWN}")
else()
  muster_found("man pages" "none: there is no lowdown")
endif()

# muster_man_pages(<program> <component> <commands>...): the page of a program, and those of its commands, installed.
function(muster_man_pages program component)
  if(NOT MUSTER_LOWDOWN)
    return()
  endif()
  set(folder ${PROJECT_BINARY_DIR}/man)
  file(MAKE_DIRECTORY ${folder})
  set(sections ${PROJECT_SOURCE_DIR}/docs/environment.md)
  set(insert ${PROJECT_SOURCE_DIR}/cmake/muster_manual.awk)
  foreach(command IN ITEMS "" LISTS ARGN)
    set(page ${folder}/${program})
    if(command)
      string(APPEND page -${command})
    endif()
    # No word is divided, a hyphen is the minus that it is in an option, and code, \fC or \f(CR by the version of lowdown, is bold.
    add_custom_command(OUTPUT ${page}.1
      COMMAND $<TARGET_FILE:${program}> manual ${command} > ${page}.txt
      COMMAND awk -f ${insert} ${sections} ${page}.txt > ${page}.md
      COMMAND ${MUSTER_LOWDOWN} -s -t man --out-no-smarty -o ${page}.1 ${page}.md
      COMMAND sed -i -e "/^[.]TH/a .nh" -e "/^[.]/!s/-/\\\\-/g" -e "s/\\\\fC/\\\\fB/g" -e "s/\\\\f(CR/\\\\fB/g" ${page}.1
      DEPENDS ${program} ${sections} ${insert} VERBATIM)
    list(APPEND pages ${page}.1)
  endforeach()
  add_custom_target(${program}_manual ALL DEPENDS ${pages})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component})
endfunction()
