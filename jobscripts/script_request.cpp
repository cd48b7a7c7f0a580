#include "jobscripts/script_request.hpp"

namespace muster {

std::string_view to_string(script_kind kind) noexcept {
    switch (kind) {
        case script_kind::slurm: return "slurm";
        case script_kind::pbs: return "pbs";
        case script_kind::cobalt: return "cobalt";
        case script_kind::flux: return "flux";
        case script_kind::local: return "local";
    }
    return "unknown";
}

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
