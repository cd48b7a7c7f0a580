// A site: the rules and hardware of a computing centre, read from one TOML file.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "base/units.hpp"
#include "jobscripts/script_request.hpp"
#include "launch/settings/setting.hpp"

namespace muster {

struct toml_document;

/// Bounds for a job, both ends included.
struct queue_limits {
    int min_nodes = 1;
    std::optional<int> max_nodes;
    std::optional<duration> min_walltime;
    std::optional<duration> max_walltime;

    /// Returns whether both are known; otherwise nobody can say that a job would fit.
    bool are_known() const noexcept { return max_nodes && max_walltime; }
    bool operator==(queue_limits const&) const = default;
};

/// A queue behind a routing queue.
struct queue_route {
    std::string name;
    queue_limits limits;

    bool operator==(queue_route const&) const = default;
};

struct site_queue {
    std::string name;
    std::string note;
    queue_limits limits;
    bool select_gpus = false;              ///< PBS: select counts GPUs of one node, not nodes
    std::vector<int> gpu_counts;           ///< the only numbers of GPUs that it takes; empty: any
    std::vector<queue_route> routes;       ///< if there are any, a job must fit one of them
    std::optional<int> gpus, cores, cpus;  ///< its nodes', if they differ from [node]
    std::vector<std::string> accounts;     ///< those that may use it; empty: all
    std::optional<int> max_gpu_nodes;      ///< how many of its nodes have GPUs, if not all have

    bool operator==(site_queue const&) const = default;
};

/// The shape of one node; fields that the site file does not set are empty.
struct site_node {
    std::optional<int> count;  ///< how many there are
    std::optional<int> gpus;
    std::string gpu_model;
    std::optional<int> cores;           ///< physical ones
    std::optional<int> cpus;            ///< hardware threads
    std::vector<std::string> gpu_cpus;  ///< by GPU index: the hardware threads near it, as in "0-7,32-39"
    std::vector<int> gpu_numa;          ///< by GPU index: its NUMA node
    std::vector<int> nearest_gpu;       ///< by local rank, if the ranks fill the cores from 0 upwards
    std::vector<int> nic_gpu;           ///< by network card: the GPU nearest to it
    std::string topology;               ///< the machine that muster plan shows (--topology), if its name is not the site's

    bool operator==(site_node const&) const = default;
};

/// Says what a job script's directives must or may contain.
struct site_header {
    bool account_required = false;
    std::string account_hint;
    bool queue_required = false;
    std::string default_queue;
    bool queue_is_qos = false;  ///< Slurm: a quality of service, not a partition
    gpu_request gpus_by = gpu_request::gpus_per_node;
    std::string constraint;
    bool whole_nodes = false;
    std::string chunk;
    std::string place;
    std::string filesystems;
    std::string attributes;
    std::vector<std::string> directives;
    std::optional<int> cpus_per_gpu;  ///< hardware threads to request; nothing: an equal share of the node's
    bool login_shell = false;

    bool operator==(site_header const&) const = default;
};

/// The source of facts, and when they were looked up (YYYY-MM-DD).
struct site_fact {
    std::string source;
    std::string date;

    bool operator==(site_fact const&) const = default;
};

struct site {
    std::string file;  ///< the file it was read from; empty: no file
    std::string name;
    std::string description;
    script_kind scheduler = script_kind::slurm;
    std::string source;                                ///< where the facts come from
    std::string source_date;                           ///< YYYY-MM-DD
    std::map<std::string, site_fact> section_sources;  ///< for sections whose facts come from elsewhere, by their names
    std::vector<std::string> unknown;                  ///< what could not be confirmed, and is therefore not in the file
    bool decommissioned = false;                       ///< the machine no longer exists
    site_node node;
    site_header header;
    std::vector<site_queue> queues;  ///< empty: the site file knows nothing about queues
    std::vector<std::string> modules;
    std::vector<std::string> setup;                          ///< shell lines
    std::vector<std::string> modules_multi_node;             ///< in addition, in jobs of several nodes; can be left out
    std::vector<std::string> setup_multi_node;               ///< in addition, in jobs of several nodes; can be left out
    std::string container_runtime;                           ///< apptainer, singularity or pyxis; empty: not known
    std::optional<std::vector<std::string>> container_args;  ///< words for it; nothing: not known
    std::string scratch;     ///< a folder that nodes share, for large files; may contain $NAME for the reader; empty: not known
    std::string node_local;  ///< a folder of each node
    std::vector<std::pair<std::string, std::string>> environment;  ///< in every job
    std::vector<std::pair<std::string, std::string>>
        environment_multi_node;          ///< in addition, in jobs of several nodes; can be left out
    std::vector<file_setting> settings;  ///< the defaults at this site

    bool operator==(site const&) const = default;
};

/// Reads the site in `text`. Pure. Checks every key: an unknown, missing or duplicate key, a wrong type, and a value that is out
/// of range or contradicts another one are a parse_error (errc::config) with `origin`, line and caret.
site parse_site(std::string_view text, std::string_view origin);

/// Does the same for a document that has been read.
site parse_site(toml_document const& document);

/// Returns the site as jobs of that queue find it: with the queue's nodes, and its name naming the queue. Pure.
site with_nodes_of_queue(site where, std::string const& queue);

/// Returns whether jobs there can request GPUs, according to its file; nothing if that does not say. Pure.
std::optional<bool> has_gpus(site const& where) noexcept;

/// Returns the folder in which this program is installed: PREFIX of PREFIX/bin/muster. Throws errc::system.
std::filesystem::path installed_root();

/// Returns folders of site files that did not come with this program: $MUSTER_SITE_PATH (separated by colons), the user's
/// ($XDG_CONFIG_HOME or ~/.config, then /muster/sites), the machine's (/etc/muster/sites), the installation's
/// (PREFIX/etc/muster/sites). They may not exist.
std::vector<std::filesystem::path> own_site_folders(environment const& env);

/// Returns folders that may contain site files, in order: own_site_folders, the one installed with this program, the one this
/// program was built from. They may not exist.
std::vector<std::filesystem::path> site_search_path(environment const& env);

/// Returns the file of the site of that name in the first of `folders` that has it; a name with a slash or ending in ".toml" is a
/// file. Throws errc::usage if no site has the name, with the nearest ones and where it searched.
std::filesystem::path find_site_file(std::string const& name_or_path, std::vector<std::filesystem::path> const& folders);

/// Returns the site in that file. Also throws errc::usage if there is no such file; errc::config if it is invalid or its name is
/// not the site's.
site load_site(std::string const& name_or_path, std::vector<std::filesystem::path> const& folders);

/// Returns the template that `named` (--template) means: a name with a slash or ending in ".mustache" is a file, any other is
/// NAME.mustache in the first of `folders` that has it. Without a name, the site's own template next to its file, or "" for the
/// built-in one. Throws errc::usage for a name that none of the folders has.
std::string find_template(site const& where, std::string const& named, std::vector<std::filesystem::path> const& folders);

struct site_entry {
    std::string name;
    std::filesystem::path path;
    std::string description;
    site known;           ///< the file's content
    std::string problem;  ///< why the file is not usable; empty if it is

    bool operator==(site_entry const&) const = default;
};

/// Returns every site of `folders` in order of name; of two files with one name, the one that load_site takes. Does not throw for
/// an invalid file: see `problem`.
std::vector<site_entry> list_sites(std::vector<std::filesystem::path> const& folders);

// Finds all faults of a site file in one reading.

/// Returns each fault of the text, in its order, as errors show them: ORIGIN:LINE:COLUMN, what, the line and a caret. Leaves out
/// faults that follow from a reported one. Nothing after a fault of TOML itself is read. Pure.
std::vector<std::string> site_faults(std::string_view text, std::string_view origin);

/// Returns whether a text is meant as a site file and not as a settings file: it has tables or keys that only site files have.
bool looks_like_site(std::string_view text);

}  // namespace muster
