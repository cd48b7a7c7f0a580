// The facts of a cluster, as its scheduler reports them, and the site file that holds them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/units.hpp"
#include "jobscripts/script_request.hpp"
#include "launch/site/site.hpp"

namespace muster {

/// A partition or queue.
struct queue_facts {
    std::string name;
    bool is_default = false;
    std::optional<int> max_nodes;
    std::optional<duration> max_walltime;
    bool unlimited_time = false;
    std::optional<duration> min_walltime;
    std::vector<std::string> routes_to;  ///< of a routing queue of PBS: where its jobs go
    std::vector<std::string> accounts;   ///< that may use it; empty: all
    std::string closed;                  ///< why users cannot submit to it; empty: they can

    bool operator==(queue_facts const&) const = default;
};

/// Nodes of one shape.
struct node_facts {
    int count = 0;
    std::optional<int> gpus;   ///< 0: the scheduler knows of none
    std::string gpu_model;     ///< empty: not told
    std::optional<int> cores;  ///< physical ones
    std::optional<int> cpus;   ///< hardware threads

    bool operator==(node_facts const&) const = default;
};

struct cluster_facts {
    script_kind scheduler = script_kind::local;
    std::string name;
    std::string source;              ///< the commands that were asked
    std::vector<node_facts> shapes;  ///< the shape to use first
    std::vector<queue_facts> queues;
    std::map<std::string, std::vector<node_facts>> queue_shapes;  ///< by a queue's name, the shape to use first; of Slurm alone
    std::optional<bool> account_required;                         ///< nothing: not told
    std::vector<std::string> accounts;                            ///< that the user may charge, as far as is known
    std::vector<std::string> qualities;                           ///< of service (QOS) that the user may ask for, the same
    std::vector<std::string> modules;                             ///< environment modules that jobs here may want, the same
    std::vector<std::string> unknown;

    bool operator==(cluster_facts const&) const = default;
};

/// From `sinfo -h -e -o sinfo_format` and `scontrol show config`. Lines that do not parse are left out. A node that is in several partitions counts once;
/// where lines lack their last column, the names of nodes, those of the largest partition count. Pure.
inline constexpr std::string_view sinfo_format = "%P|%l|%s|%D|%c|%X|%Y|%Z|%G|%N";
cluster_facts read_slurm_facts(std::string_view sinfo, std::string_view config);

/// Takes what `scontrol -o show partition` says of who may use a partition, and whether it takes jobs. `facts.accounts` are known before. Pure.
void read_partitions(std::string_view records, cluster_facts& facts);

/// From `pbsnodes -a -F json` and `qmgr -c "print server"`. Throws errc::parse if the former is no JSON. Pure.
cluster_facts read_pbs_facts(std::string_view pbsnodes, std::string_view qmgr);

/// From `flux resource list` with flux_resource_format and `flux queue list` with flux_queue_format; an instance without queues prints a line
/// without a name. Pure.
inline constexpr std::string_view flux_resource_format = "{nnodes}|{ncores}|{ngpus}";
inline constexpr std::string_view flux_queue_format = "{queue}|{queuem}|{limits.timelimit}|{limits.max.nnodes}";
cluster_facts read_flux_facts(std::string_view resources, std::string_view queues);

/// Takes the accounts and the qualities of service in what sacctmgr printed ("a|high,normal"). Pure.
void read_associations(std::string_view printed, cluster_facts& facts);

/// Of what `module -t avail` printed the modules that training may want: compilers' run times, MPI, Python, containers; at most 16. Pure.
std::vector<std::string> choose_modules(std::string_view printed);

/// What this machine's scheduler tells, and, of this machine itself, NVML and hwloc; the modules are left out. Runs the scheduler's programs.
cluster_facts find_cluster_facts(environment const& variables);
/// Whether jobs at a site can ask for GPUs, as its file says, else the scheduler of this machine, or the machine itself; true where nobody knows.
bool may_have_gpus(site const& where, environment const& variables);
/// As choose_modules, of this machine's modules. Runs a login shell.
std::vector<std::string> find_modules(environment const& variables);

/// The site file that holds the facts; what is not known stands there as a comment. `date` is YYYY-MM-DD. Pure.
std::string site_file_text(cluster_facts const& facts, std::string_view name, std::string_view date);

// A site as people and programs read it: writes all that its file says.

/// Everything that is known, each part with its source and date, and what is not known, by name. `topology` is the file of a machine
/// like its nodes; empty: none is installed. Pure.
std::string describe_site(site const& where, std::string const& topology);

/// The same as JSON, with its end of line.
std::string site_json(site const& where, std::string const& topology);

/// A line for each site: name, scheduler, nodes, GPUs of a node, date of the facts. Files with faults are shown with the first of
/// them. Lines of at most `most_width`; 0: any.
std::string site_table(std::vector<site_entry> const& entries, std::size_t most_width);
std::string site_list_json(std::vector<site_entry> const& entries);

}  // namespace muster
