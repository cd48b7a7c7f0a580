// The folders of a node that containers of apptainer and singularity show, and those that can be shown to them.
#pragma once

#include <string_view>

namespace muster {

/// Whether such a container shows this folder without being asked to, in the default configuration: /tmp, /var/tmp, /dev and what is
/// below. Pure.
bool is_shown_in_containers(std::string_view folder) noexcept;

/// Whether this folder is to be named to --bind, and can be: it is absolute, not shown already, and holds neither comma nor colon, which
/// have a meaning there. Pure.
bool is_to_be_bound(std::string_view folder) noexcept;

}  // namespace muster
