#include "pmix/server/client_variables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pmix/server/library_server.hpp"

namespace muster::pmix {

bool knows_client_variables(std::string_view library_version, environment const& variables) {
    if (!library_version.starts_with("4.2.")) return false;
    return std::none_of(variables.begin(), variables.end(),
                        [](auto const& variable) { return variable.first.starts_with("PMIX_MCA_"); });
}

void set_client_variables(job const& description, int rank, int port, std::string_view library_version, environment& variables) {
    variables.set("PMIX_NAMESPACE", description.nspace);
    variables.set("PMIX_RANK", std::to_string(rank));
    auto const uri = fmt::format("{}.0;tcp4://127.0.0.1:{}", server_name_of(description), port);
    for (auto const* name :
         {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI2", "PMIX_SERVER_URI21"})
        variables.set(name, uri);
    variables.set("PMIX_SECURITY_MODE", client_parts.psec);
    variables.set("PMIX_BFROP_BUFFER_TYPE", "PMIX_BFROP_BUFFER_NON_DESC");
    variables.set("PMIX_GDS_MODULE", client_parts.gds);
    variables.set("PMIX_SERVER_TMPDIR", description.session_dir);
    variables.set("PMIX_SYSTEM_TMPDIR", description.session_dir);
    variables.set("PMIX_HOSTNAME", description.host);
    variables.set("PMIX_VERSION", library_version);
}

}  // namespace muster::pmix
