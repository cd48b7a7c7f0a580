#include "jobscripts/script_request.hpp"

namespace muster {

bool is_shown_in_containers(std::string_view folder) noexcept {
    for (std::string_view const shown : {"/tmp", "/var/tmp", "/dev"})
        if (folder.starts_with(shown) && (folder.size() == shown.size() || folder[shown.size()] == '/')) return true;
    return false;
}

bool is_to_be_bound(std::string_view folder) noexcept {
    return folder.size() > 1 && folder.starts_with('/') && folder.find_first_of(",:") == std::string_view::npos &&
           !is_shown_in_containers(folder);
}

}  // namespace muster
