#include "launch/settings/parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace muster {

bool has_part(std::string_view part) noexcept {
    if (part.empty()) return true;
    auto const text = parts_text();
    auto const built = split(text.substr(0, text.find('(')), ',');
    return std::ranges::any_of(built, [&](std::string_view each) { return trim(each) == part; });
}

std::string_view parts_text() noexcept {
    return MUSTER_PARTS_TEXT;
}

std::string absent_part(std::string_view what, std::string_view part) {
    return fmt::format(
        "{}: this muster was built without the part {}{}; build it with all parts, from muster's source: ./bootstrap.sh install "
        "--prefix DIR",
        what, part, part == "data" ? ", which needs the site's MPI and parallel HDF5" : "");
}

std::string absent_command(command_row const& row) {
    if (!has_part(row.part)) return absent_part(fmt::format("muster {}", row.name), row.part);
    return fmt::format(
        "muster {0}: there is no program muster-{0} in muster's folder; install the package muster-{0}, or: cmake --install "
        "BUILD --component {1} --prefix DIR",
        row.name, row.part);
}

}  // namespace muster
