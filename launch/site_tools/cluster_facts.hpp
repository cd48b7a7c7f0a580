// The facts of a cluster, as its scheduler reports them, and the site file that contains them.
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
    std::vector<std::string> routes_to;  ///< for a routing queue of PBS: where its jobs go
    std::vector<std::string> accounts;   ///< those that may use it; empty: all
    std::string closed;                  ///< why users cannot submit to it; empty: they can

    bool operator==(queue_facts const&) const = default;
};

/// Nodes of one shape.
struct node_facts {
    int count = 0;
    std::optional<int> gpus;   ///< 0: the scheduler knows no GPU
    std::string gpu_model;     ///< empty: not known
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
    std::map<std::string, std::vector<node_facts>> queue_shapes;  ///< by a queue's name, the shape to use first; for Slurm only
    std::optional<bool> account_required;                         ///< nothing: not known
    std::vector<std::string> accounts;                            ///< those that the user may charge, as far as is known
    std::vector<std::string> qualities;  ///< qualities of service (QOS) that the user may request, as far as is known
    std::vector<std::string> modules;    ///< environment modules that jobs here may want, as far as is known
    std::vector<std::string> unknown;

    bool operator==(cluster_facts const&) const = default;
};

/// Reads `sinfo -h -e -o sinfo_format` and `scontrol show config`. Skips lines that do not parse. A node in several partitions
/// counts once; if lines lack their last column, the names of nodes, those of the largest partition count. Pure.
inline constexpr std::string_view sinfo_format = "%P|%l|%s|%D|%c|%X|%Y|%Z|%G|%N";
cluster_facts read_slurm_facts(std::string_view sinfo, std::string_view config);

/// Reads from `scontrol -o show partition` who may use a partition, and whether it takes jobs. `facts.accounts` must be set
/// before. Pure.
void read_partitions(std::string_view records, cluster_facts& facts);

/// Reads `pbsnodes -a -F json` and `qmgr -c "print server"`. Throws errc::parse if the former is no JSON. Pure.
cluster_facts read_pbs_facts(std::string_view pbsnodes, std::string_view qmgr);

/// Reads `flux resource list` with flux_resource_format and `flux queue list` with flux_queue_format; an instance without queues
/// prints a line without a name. Pure.
inline constexpr std::string_view flux_resource_format = "{nnodes}|{ncores}|{ngpus}";
inline constexpr std::string_view flux_queue_format = "{queue}|{queuem}|{limits.timelimit}|{limits.max.nnodes}";
cluster_facts read_flux_facts(std::string_view resources, std::string_view queues);

/// Reads the accounts and the qualities of service that sacctmgr printed ("a|high,normal"). Pure.
void read_associations(std::string_view printed, cluster_facts& facts);

/// Returns modules that training may want, from what `module -t avail` printed: compilers' run times, MPI, Python, containers; at
/// most 16. Pure.
std::vector<std::string> choose_modules(std::string_view printed);

/// Returns what this machine's scheduler reports or, for a machine without one, NVML and hwloc; leaves out the modules. Runs the
/// scheduler's programs.
cluster_facts find_cluster_facts(environment const& variables);
/// Returns whether jobs at a site can request GPUs: according to its file, else the scheduler of this machine, or the machine
/// itself; true if none of them says.
bool may_have_gpus(site const& where, environment const& variables);
/// Does what choose_modules does for this machine's modules. Runs a login shell.
std::vector<std::string> find_modules(environment const& variables);

/// Returns the site file that contains the facts, with unknown ones as comments. `date` is YYYY-MM-DD. Pure.
std::string site_file_text(cluster_facts const& facts, std::string_view name, std::string_view date);

// Writes all that a site's file says, for people and programs.

/// Returns everything that is known, each part with its source and date, and the names of what is not known. `topology` is the
/// file of a machine like its nodes; empty: none is installed. Pure.
std::string describe_site(site const& where, std::string const& topology);

/// Returns the same as JSON, with a line end.
std::string site_json(site const& where, std::string const& topology);

/// Returns a line for each site: name, scheduler, nodes, GPUs of a node, date of the facts. Shows files with faults together with
/// their first fault. Lines have at most `most_width` characters; 0: any number.
std::string site_table(std::vector<site_entry> const& entries, std::size_t most_width);
std::string site_list_json(std::vector<site_entry> const& entries);

}  // namespace muster
