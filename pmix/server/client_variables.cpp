#include "pmix/server/client_variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "pmix/scrub.hpp"
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

std::vector<mca_default> open_mpi_defaults(job const& description) {
    auto const& shared = description.shared_memory_dir.empty() ? description.session_dir : description.shared_memory_dir;
    std::vector<mca_default> all{
        {"JSM_JSRUN_PORT", "1",
         "Open MPI 4 takes a process for a singleton whatever PMIX_* says, and starts a daemon for it, unless it knows the "
         "launcher; "
         "this makes it a direct launch with Open MPI's own binding off. Open MPI 5 does not look at it",
         true},
        {"OMPI_MCA_btl_vader_backing_directory", shared, "shared memory that goes away with the session, however that ends"},
        {"OMPI_MCA_osc_sm_backing_directory", shared, "the same for shared windows"},
        {"OMPI_MCA_osc_rdma_backing_directory", shared, "the same for other windows"},
        {"OMPI_MCA_orte_tmpdir_base", description.session_dir, "Open MPI's own session files, likewise"},
    };
    if (!description.spans_nodes()) {
        all.push_back({"OMPI_MCA_pml", "ob1", "all ranks are on one node; looking for fabrics costs 200 ms of MPI_Init"});
        all.push_back({"OMPI_MCA_btl", "self,vader", "the same: shared memory, no network"});
    }
    if (description.usable_cores > 0 && local_size_of(description) > description.usable_cores)
        all.push_back({"OMPI_MCA_mpi_oversubscribe", "1",
                       "waiting ranks yield the core: ping-pong at 32 ranks on 2 cores falls from 113 to 3.4 us"});
    return all;
}

void set_open_mpi_environment(job const& description, int rank, environment& variables) {
    // A user who chose another transport layer would be contradicted by a list of shared-memory ones.
    bool const own_pml = variables.has("OMPI_MCA_pml");
    std::string own;
    for (auto const& entry : open_mpi_defaults(description)) {
        bool set = true;
        if (entry.forced)
            variables.set(entry.name, entry.value);
        else
            set = !(own_pml && entry.name == "OMPI_MCA_btl") && variables.set_default(entry.name, entry.value);
        if (set) own += (own.empty() ? "" : ";") + entry.name + "=" + entry.value;
    }
    variables.set(defaults_variable, own);
    auto const size = std::to_string(description.world_size);
    auto const number = std::to_string(local_rank_of(description, rank));
    // PMIx sets these only for jobs that mpirun or prun describe.
    variables.set("OMPI_COMM_WORLD_SIZE", size);
    variables.set("OMPI_COMM_WORLD_RANK", std::to_string(rank));
    variables.set("OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(local_size_of(description)));
    variables.set("OMPI_COMM_WORLD_LOCAL_RANK", number);
    variables.set("OMPI_COMM_WORLD_NODE_RANK", number);
    variables.set("OMPI_UNIVERSE_SIZE", size);
}

}  // namespace muster::pmix
