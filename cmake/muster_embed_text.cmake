# muster_embed_text(<target> <name> <file>...): adds to <target> a generated source that defines
#   std::span<muster::embedded_text const> muster::<name>() noexcept    (see base/text.hpp)
# with a row for each file: its name without the folder, and its text. A header of the target declares the function.
function(muster_embed_text target name)
  set(rows "")
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    cmake_path(GET file FILENAME row)
    file(READ ${file} text)
    string(APPEND rows "    {\"${row}\", R\"muster_text(${text})muster_text\"},\n")
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[
#include <array>

#include "base/text.hpp"

namespace muster {

namespace {
constexpr auto rows = std::to_array<embedded_text>({
@rows@});
}  // namespace

std::span<embedded_text const> @name@() noexcept;
std::span<embedded_text const> @name@() noexcept { return rows; }

}  // namespace muster
]])
  target_sources(${target} PRIVATE ${source})
endfunction()
