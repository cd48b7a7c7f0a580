# muster_man_page(<program> <component>): the page that `<program> man` prints, installed.
function(muster_man_page program component)
  set(page ${CMAKE_CURRENT_BINARY_DIR}/${program}.1)
  add_custom_command(OUTPUT ${page} COMMAND ${program} man > ${page} DEPENDS ${program} VERBATIM)
  add_custom_target(${program}_manual ALL DEPENDS ${page})
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component})
endfunction()
